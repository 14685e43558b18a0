import { useLocation } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { isAnythingEntered } from '../../data/entered.ts';
import { useFirstMessages } from '../../messages/index.ts';
import { buttonLink } from '../button.tsx';
import { Logo } from './logo.tsx';
import styles from './signed-out.module.css';

/** For people who are not signed in. `signIn`: `['oidc']`, or empty if only links sign in. */
export function SignedOutPage({ signIn }: { readonly signIn: readonly string[] }) {
  const { shell } = useFirstMessages();
  const to = useLocation({ select: ({ href }) => href });
  // While this is rendered for the first time, the page that the session's end hides is still there.
  const [isKept] = useState(isAnythingEntered);
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    document.title = shell.signedOut.title;
    // What had the focus may be hidden now: so the page is read aloud.
    main.current?.focus();
  }, [shell.signedOut.title]);
  return (
    <main ref={main} tabIndex={-1} className={styles.page}>
      <Logo />
      <h1>{shell.signedOut.title}</h1>
      {isKept && <p>{shell.signedOut.kept}</p>}
      {signIn.includes('oidc') ? (
        <a
          href={`/sign-in?to=${encodeURIComponent(to)}`}
          {...(isKept && { target: '_blank' })}
          className={buttonLink.primary}
        >
          {shell.signedOut.provider}
        </a>
      ) : (
        <>
          <p>{shell.signedOut.link}</p>
          <pre>signpost dashboard link --account acct_… --email …</pre>
        </>
      )}
    </main>
  );
}
