import { useIsFetching, useSuspenseQuery } from '@tanstack/react-query';
import { Outlet, useNavigate, useRouter, useRouterState } from '@tanstack/react-router';
import { Menu as MenuIcon } from 'lucide-react';
import { Activity, lazy, Suspense, useEffect, useRef, useState } from 'react';
import { RouterProvider } from 'react-aria-components';
import { isTemporary } from '../../data/queries.ts';
import { isSignedOut, sessionQuery, shownSession } from '../../data/session.ts';
import { useFirstMessages } from '../../messages/index.ts';
import { IconButton } from '../button.tsx';
import { Announced, Notice } from '../page.tsx';
import { Toasts } from '../toasts.tsx';
import { Logo } from './logo.tsx';
import { Navigation } from './navigation.tsx';
import styles from './shell.module.css';
import { showLoaded } from './show-loaded.ts';
import { SignedOutPage } from './signed-out.tsx';

// Loaded when they are first opened: overlays are a fifth of what the first page would load.
const loadDrawer = () => import('./drawer.tsx');
const loadPalette = () => import('./palette.tsx');
const Drawer = lazy(loadDrawer);
const Palette = lazy(loadPalette);

/**
 * The frame around all pages: navigation, the account, search, messages; or the way to sign in. When the session ends,
 * the page stays as it is, hidden and at rest: with what was entered it appears again once the person has signed in.
 */
export function Shell() {
  const { data: session } = useSuspenseQuery(sessionQuery);
  const navigate = useNavigate();
  const isOut = isSignedOut(session);
  return (
    <>
      {isOut && <SignedOutPage signIn={session.signIn} />}
      {shownSession() && (
        <Activity mode={isOut ? 'hidden' : 'visible'}>
          <RouterProvider navigate={(to) => void navigate({ to })}>
            <Frame />
          </RouterProvider>
        </Activity>
      )}
    </>
  );
}

function Frame() {
  const { shell } = useFirstMessages();
  const [isNavigationOpen, setNavigationOpen] = useState(false);
  const [isPaletteOpen, setPaletteOpen] = useState(false);
  const router = useRouter();
  // Every link closes the drawer, also one to the page that is shown.
  useEffect(() => router.subscribe('onBeforeNavigate', () => setNavigationOpen(false)), [router]);
  const main = useRef<HTMLElement>(null);
  const shown = useRouterState({ select: (state) => state.resolvedLocation?.pathname });
  const before = useRef<string>(undefined);
  useEffect(() => {
    // A new page is read from its beginning, wherever the link was that led to it.
    const isNew = before.current !== undefined && before.current !== shown;
    if (isNew && !main.current?.contains(document.activeElement)) main.current?.focus({ preventScroll: true });
    before.current = shown;
  }, [shown]);
  useEffect(() => {
    const open = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      // Over an open dialog it would lead away from what is typed or shown there.
      if (!document.querySelector('[role=dialog], [role=alertdialog]'))
        void showLoaded(loadPalette, () => setPaletteOpen(true));
    };
    document.addEventListener('keydown', open);
    return () => document.removeEventListener('keydown', open);
  }, []);
  const navigation = <Navigation onSearch={() => void showLoaded(loadPalette, () => setPaletteOpen(true))} />;
  return (
    <div className={styles.shell}>
      <a href="#content" className={styles.skip}>
        {shell.skip}
      </a>
      <header className={styles.side}>{navigation}</header>
      <header className={styles.bar}>
        <Logo />
        <IconButton
          icon={MenuIcon}
          label={shell.openNavigation}
          onPress={() => void showLoaded(loadDrawer, () => setNavigationOpen(true))}
        />
      </header>
      {isNavigationOpen && (
        <Suspense>
          <Drawer onClose={() => setNavigationOpen(false)}>{navigation}</Drawer>
        </Suspense>
      )}
      <main ref={main} id="content" tabIndex={-1} className={styles.content}>
        <Unavailable />
        <Suspense>
          <Outlet />
        </Suspense>
      </main>
      {isPaletteOpen && (
        <Suspense>
          <Palette onClose={() => setPaletteOpen(false)} />
        </Suspense>
      )}
      <Toasts />
    </div>
  );
}

/** Says that calls fail because Signpost cannot be reached, as long as they are being repeated. */
function Unavailable() {
  const { shell } = useFirstMessages();
  const failing = useIsFetching({
    predicate: ({ state }) => state.fetchFailureCount > 0 && isTemporary(state.fetchFailureReason),
  });
  return <Announced>{failing > 0 && <Notice look="warning">{shell.unavailable}</Notice>}</Announced>;
}
