import { useBlocker, useLocation } from '@tanstack/react-router';
import { lazy, Suspense, useEffect, useRef, useState } from 'react';
import { isAnythingEntered } from '../../data/entered.ts';
import { isOpeningAnew, shownSession } from '../../data/session.ts';
import { useFirstMessages } from '../../messages/index.ts';
import { buttonLink } from '../button.tsx';
import { Logo } from './logo.tsx';
import styles from './signed-out.module.css';

// Loaded already by pages with a form that asks.
const ConfirmDiscard = lazy(() => import('../leave-guard.tsx').then(({ ConfirmDiscard: each }) => ({ default: each })));

/** For people who are not signed in. `signIn`: `['oidc']`, or empty if only links sign in. */
export function SignedOutPage({ signIn }: { readonly signIn: readonly string[] }) {
  const { shell } = useFirstMessages();
  const to = useLocation({ select: ({ href }) => href });
  // While this is rendered for the first time, the page that the session's end hides is still there.
  const [isKept, setKept] = useState(isAnythingEntered);
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    document.title = shell.signedOut.title;
    // What had the focus may be hidden now: so the page is read aloud.
    main.current?.focus();
  }, [shell.signedOut.title]);
  // The guards of the hidden page are at rest. For another account or person nothing is kept, so there is nothing to
  // ask.
  const { status, proceed, reset } = useBlocker({
    shouldBlockFn: ({ current, next }) => isKept && current.pathname !== next.pathname,
    enableBeforeUnload: () => isKept && !isOpeningAnew(),
    withResolver: true,
  });
  const account = shownSession()?.account.id;
  const query = new URLSearchParams({ to, ...(account !== undefined && { account }) });
  return (
    <main ref={main} tabIndex={-1} className={styles.page}>
      <Logo />
      <h1>{shell.signedOut.title}</h1>
      {isKept && <p>{shell.signedOut.kept}</p>}
      {signIn.includes('oidc') ? (
        <a href={`/sign-in?${query}`} {...(isKept && { target: '_blank' })} className={buttonLink.primary}>
          {shell.signedOut.provider}
        </a>
      ) : (
        <>
          <p>{shell.signedOut.link}</p>
          <pre>signpost dashboard link --account acct_… --email …</pre>
        </>
      )}
      {status === 'blocked' && (
        <Suspense>
          <ConfirmDiscard
            isOpen
            onClose={() => reset?.()}
            onDiscard={() => {
              setKept(false);
              proceed?.();
            }}
          />
        </Suspense>
      )}
    </main>
  );
}
