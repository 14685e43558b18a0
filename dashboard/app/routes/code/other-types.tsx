import { Pencil } from 'lucide-react';
import { useState } from 'react';
import type { Code } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { Button } from '../../components/button.tsx';
import { CopyButton } from '../../components/copy-button.tsx';
import { EditLandingPage } from '../../components/landing-page/edit-dialog.tsx';
import { Panel, Section } from '../../components/page.tsx';
import { useMay } from '../../data/session.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './code.module.css';

/** What a scan of a landing-page code shows. */
export function LandingPageSection({ code }: { readonly code: Code }) {
  const { code: texts, landingPage: editor } = useMessages();
  const mayEdit = useMay('editor');
  const [isEditing, setEditing] = useState(false);
  const { landingPage } = code;
  if (!landingPage) return null;
  return (
    <Section
      title={texts.page.title}
      actions={
        mayEdit && (
          <Button icon={Pencil} onPress={() => setEditing(true)}>
            {editor.edit}
          </Button>
        )
      }
    >
      <EditLandingPage code={code} isOpen={isEditing} onClose={() => setEditing(false)} />
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
