import { Pencil } from 'lucide-react';
import { useState } from 'react';
import type { Code } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { Button } from '../../components/button.tsx';
import { CopyButton } from '../../components/copy-button.tsx';
import { EditLandingPage } from '../../components/landing-page/edit-dialog.tsx';
import { LandingPagePreview } from '../../components/landing-page/preview.tsx';
import { Panel, Section } from '../../components/page.tsx';
import { useMay } from '../../data/session.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './code.module.css';

/** What a scan of a landing-page code shows. */
export function LandingPageSection({ code }: { readonly code: Code }) {
  const { code: texts, landingPage } = useMessages();
  const mayEdit = useMay('editor');
  const [isEditing, setEditing] = useState(false);
  if (!code.landingPage || (code.deletedAt && !isEditing)) return null;
  return (
    <Section
      title={texts.page.title}
      actions={
        mayEdit && (
          <Button icon={Pencil} onPress={() => setEditing(true)}>
            {landingPage.edit}
          </Button>
        )
      }
    >
      <Panel>
        <p className={styles.muted}>{texts.page.text}</p>
        <LandingPagePreview page={code.landingPage} />
      </Panel>
      {isEditing && <EditLandingPage code={code} onClose={() => setEditing(false)} />}
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
        <pre>{code.payload}</pre>
      </Panel>
    </Section>
  );
}
