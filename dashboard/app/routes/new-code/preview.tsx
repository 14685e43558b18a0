import { useDeferredValue } from 'react';
import { CodeImage } from '../../components/code-image.tsx';
import { colourOr } from '../../components/colour-field.tsx';
import { useScanOrigin } from '../../components/domain-select.tsx';
import { Notice } from '../../components/page.tsx';
import { useMessages } from '../../messages/index.ts';
import { type Draft, encodedBy, hasDesign, hasDomain, warningsOf } from './draft.ts';
import styles from './new-code.module.css';

/** The code as it will look, drawn while one types, and what may make it hard to scan. */
export function CodePreview({ draft }: { readonly draft: Draft }) {
  const messages = useMessages();
  const { newCode } = messages;
  const shown = useDeferredValue(draft);
  const origin = useScanOrigin(shown.domainId);
  const encoded = encodedBy(shown, origin);
  const colours = hasDesign(shown)
    ? { foreground: colourOr(shown.foreground, ''), background: colourOr(shown.background, '') }
    : {};
  return (
    <>
      {encoded === undefined ? (
        <p className={styles.nothing}>{newCode.nothingYet}</p>
      ) : (
        <div className={shown.kind === 'landing_page' ? `${styles.image} ${styles.small}` : styles.image}>
          <CodeImage text={encoded} label={newCode.previewImage} {...colours} />
        </div>
      )}
      {hasDomain(shown) && (
        <code className={styles.scanUrl}>
          {origin.replace(/^https?:\/\//, '')}/r/<span className={styles.placeholder}>•••••••</span>
        </code>
      )}
      {encoded !== undefined && (
        <p className={styles.note}>{hasDomain(shown) ? newCode.placeholderNote : newCode.payloadNote}</p>
      )}
      {warningsOf(shown, encoded, messages).map((warning) => (
        <Notice key={warning} look="warning">
          {warning}
        </Notice>
      ))}
    </>
  );
}
