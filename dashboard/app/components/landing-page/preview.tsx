import { useState } from 'react';
import { createPortal } from 'react-dom';
import { landingPageColours, pageStyleIn, shownLinks } from '../../../../common/codes/page-style.ts';
import type { LandingPage } from '../../../../proto/gen/signpost/pages/v1/landing_page_pb.ts';
import { useMessages } from '../../messages/index.ts';
import { Segmented } from '../segmented.tsx';
import styles from './landing-page.module.css';

const THEMES = ['light', 'dark'] as const;
type PhoneTheme = (typeof THEMES)[number];

/**
 * A landing page as a phone of 390 px width shows it: the gateway's own style, in a document of its own, so that sizes
 * relative to the window are those of the phone. Everything in it is text for React; nothing is parsed as HTML.
 */
export function LandingPagePreview({ page }: { readonly page: LandingPage }) {
  const { landingPage } = useMessages();
  const [theme, setTheme] = useState<PhoneTheme>('light');
  const [inside, setInside] = useState<Document | null>(null);
  const style = pageStyleIn(theme) + landingPageColours(withSixDigits(page));
  return (
    <div className={styles.preview}>
      <Segmented
        label={landingPage.previewTheme}
        options={THEMES.map((id) => ({ id, label: landingPage.themes[id] }))}
        value={theme}
        onChange={setTheme}
      />
      <div className={styles.phone}>
        <iframe
          title={landingPage.preview}
          // Its links lead nowhere, and everything in it is in the fields beside it.
          inert
          className={styles.screen}
          // Firefox replaces the first document when it has loaded.
          onLoad={(event) => setInside(event.currentTarget.contentDocument)}
          ref={(frame) => setInside(frame?.contentDocument ?? null)}
        />
      </div>
      {inside && createPortal(<PhonePage page={page} style={style} inside={inside} />, inside.body)}
    </div>
  );
}

/** The page's elements, the same as in the gateway's HTML. */
function PhonePage(props: { readonly page: LandingPage; readonly style: string; readonly inside: Document }) {
  const { page, style, inside } = props;
  const { landingPage } = useMessages();
  const links = shownLinks(page);
  // Every document has style sheets of its own. The policy forbids style elements, but not this.
  const sheet = (node: HTMLElement | null) => {
    const StyleSheet = inside.defaultView?.CSSStyleSheet;
    if (!node || !StyleSheet) return;
    const adopted = new StyleSheet();
    adopted.replaceSync(style);
    inside.adoptedStyleSheets = [adopted];
  };
  return (
    <main ref={sheet}>
      <h1>{page.title.trim() || landingPage.untitled}</h1>
      {page.text.trim() !== '' && <p>{page.text.trim()}</p>}
      {links.length > 0 && (
        <ul>
          {links.map(({ label, url }, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a link is its position.
            <li key={index}>
              <a href={url} rel="noopener nofollow">
                {label}
              </a>
            </li>
          ))}
        </ul>
      )}
    </main>
  );
}

/** The core stores colours with six digits. */
function withSixDigits(page: LandingPage): LandingPage {
  const full = (colour: string) => (colour.length === 4 ? colour.replace(/[^#]/g, '$&$&') : colour);
  return { ...page, foregroundColor: full(page.foregroundColor), backgroundColor: full(page.backgroundColor) };
}
