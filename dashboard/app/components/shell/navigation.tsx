import { Link } from '@tanstack/react-router';
import {
  Check,
  ChevronsUpDown,
  FolderTree,
  Globe,
  KeyRound,
  Layers,
  LayoutDashboard,
  LogOut,
  Monitor,
  Moon,
  QrCode,
  ScrollText,
  Search,
  Sun,
  Users,
  Webhook,
} from 'lucide-react';
import { lazy, Suspense, useState } from 'react';
import { isAnythingEntered } from '../../data/entered.ts';
import { LANGUAGES, type Language, setLanguage, setTheme, useLanguage, useTheme } from '../../data/preferences.ts';
import { signOut, switchAccount, useSession } from '../../data/session.ts';
import { loadFirstMessages, loadMessages, useFirstMessages } from '../../messages/index.ts';
import { Button } from '../button.tsx';
import { Menu } from '../menu.tsx';
import { Logo } from './logo.tsx';
import styles from './navigation.module.css';
import { showLoaded } from './show-loaded.ts';

const PAGES = [
  [
    { to: '/', key: 'overview', icon: LayoutDashboard },
    { to: '/codes', key: 'codes', icon: QrCode },
    { to: '/batches', key: 'batches', icon: Layers },
    { to: '/folders-and-tags', key: 'labels', icon: FolderTree },
  ],
  [
    { to: '/domains', key: 'domains', icon: Globe },
    { to: '/webhooks', key: 'webhooks', icon: Webhook },
    { to: '/api', key: 'api', icon: KeyRound },
  ],
  [
    { to: '/team', key: 'team', icon: Users },
    { to: '/audit-log', key: 'audit', icon: ScrollText },
  ],
] as const;

// Loaded by every form that asks.
const loadGuard = () => import('../leave-guard.tsx');
const ConfirmDiscard = lazy(() => loadGuard().then(({ ConfirmDiscard }) => ({ default: ConfirmDiscard })));

/** All pages, the account, search, and the person's own settings. */
export function Navigation({ onSearch }: { readonly onSearch: () => void }) {
  const { shell } = useFirstMessages();
  const [asked, setAsked] = useState<() => Promise<void>>();
  // Asked before the session changes: a page that was kept afterwards could not be saved.
  const leave = (change: () => Promise<void>) =>
    void (isAnythingEntered() ? showLoaded(loadGuard, () => setAsked(() => change)) : change());
  return (
    <div className={styles.navigation}>
      <Logo />
      <AccountMenu onSwitch={(id) => leave(() => switchAccount(id))} />
      <Button icon={Search} onPress={onSearch} aria-keyshortcuts="Control+K">
        <span className={styles.search}>{shell.palette.open}</span>
        <kbd>Ctrl K</kbd>
      </Button>
      <nav aria-label={shell.navigation} className={styles.pages}>
        {PAGES.map((group) => (
          <ul key={group[0].key}>
            {group.map(({ to, key, icon: Icon }) => (
              <li key={key}>
                <Link to={to} activeOptions={{ exact: to === '/' }} className={styles.link}>
                  <Icon aria-hidden size={16} />
                  {shell.nav[key]}
                </Link>
              </li>
            ))}
          </ul>
        ))}
      </nav>
      <PersonMenu onSignOut={() => leave(signOut)} />
      {asked && (
        <Suspense>
          <ConfirmDiscard isOpen onClose={() => setAsked(undefined)} onDiscard={asked} />
        </Suspense>
      )}
    </div>
  );
}

/** The open account; a menu if the person has several. */
function AccountMenu({ onSwitch }: { readonly onSwitch: (id: string) => void }) {
  const { shell } = useFirstMessages();
  const { account, accounts, member } = useSession();
  const current = (
    <span className={styles.account}>
      <strong>{account.name}</strong>
      <span className={styles.role}>{shell.roles[member.role]}</span>
    </span>
  );
  if (accounts.length < 2) return <div className={styles.onlyAccount}>{current}</div>;
  return (
    <Menu
      label={shell.switchAccount}
      actions={accounts.map(({ id, name }) => ({
        id,
        label: name,
        icon: id === account.id ? Check : undefined,
        onAction: () => onSwitch(id),
      }))}
    >
      <Button aria-label={`${shell.switchAccount}: ${account.name}`}>
        {current}
        <ChevronsUpDown aria-hidden size={16} />
      </Button>
    </Menu>
  );
}

const THEMES = [
  { id: 'system', icon: Monitor },
  { id: 'light', icon: Sun },
  { id: 'dark', icon: Moon },
] as const;

/** Changes the language as soon as its texts are there, so that no page is without them meanwhile. */
function speak(language: Language): Promise<void> {
  return showLoaded(
    () => Promise.all([loadFirstMessages(language), loadMessages(language)]),
    () => setLanguage(language),
  );
}

function PersonMenu({ onSignOut }: { readonly onSignOut: () => void }) {
  const { shell } = useFirstMessages();
  const { email, name } = useSession();
  const language = useLanguage();
  const theme = useTheme();
  return (
    <div className={styles.person}>
      <Menu
        label={shell.signedInAs(email)}
        actions={[
          ...THEMES.map(({ id, icon }) => ({
            id,
            label: shell.themes[id],
            icon: id === theme ? Check : icon,
            onAction: () => setTheme(id),
          })),
          ...LANGUAGES.filter((each) => each !== language).map((each) => ({
            id: each,
            label: shell.languages[each],
            icon: Globe,
            onAction: () => void speak(each),
          })),
          { id: 'sign-out', label: shell.signOut, icon: LogOut, onAction: onSignOut },
        ]}
      >
        <Button look="quiet" aria-label={shell.signedInAs(email)}>
          <span className={styles.email}>{name ?? email}</span>
          <ChevronsUpDown aria-hidden size={16} />
        </Button>
      </Menu>
    </div>
  );
}
