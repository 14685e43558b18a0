import type { Code } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { CopyButton } from '../../components/copy-button.tsx';
import { Panel, Section } from '../../components/page.tsx';
import { useMessages } from '../../messages/index.ts';
import styles from './code.module.css';

/** What a scan of a landing-page code shows. */
export function LandingPageSection({ code }: { readonly code: Code }) {
  const { code: texts } = useMessages();
  const { landingPage } = code;
  if (!landingPage) return null;
  return (
    <Section title={texts.page.title}>
      <Panel>
        <p className={styles.muted}>{texts.page.text}</p>
        <div>
          <h3>{landingPage.title}</h3>
          <p className={styles.pageText}>{landingPage.text}</p>
        </div>
        {landingPage.links.length > 0 && (
          <ul className={styles.links}>
            {landingPage.links.map(({ label, url }, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: two links may be the same.
              <li key={index}>
                <a href={url} target="_blank" rel="noreferrer">
                  {label}
                </a>
                <span className={styles.muted}> {url}</span>
              </li>
            ))}
          </ul>
        )}
      </Panel>
    </Section>
  );
}

/** What the image of a static code contains. */
export function StaticContent({ code }: { readonly code: Code }) {
  const { code: texts, common } = useMessages();
  return (
    <Section
      title={texts.content.title}
      actions={<CopyButton text={code.payload ?? ''} what={texts.content.title} label={common.copy} />}
    >
      <Panel>
        <p className={styles.muted}>{texts.content.text}</p>
        <pre className={styles.payload}>{code.payload}</pre>
      </Panel>
    </Section>
  );
}
