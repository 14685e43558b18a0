// biome-ignore-all lint/a11y/useSemanticElements: a table of absolutely placed rows cannot be made of table elements.
// biome-ignore-all lint/a11y/useFocusableInteractive: the list has the focus and names its active row.
import { GitFork } from 'lucide-react';
import { type Code, CodeType } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { StoredCodeImage } from '../../components/code-image.tsx';
import { CodeState } from '../../components/code-state.tsx';
import { CopyButton } from '../../components/copy-button.tsx';
import { RelativeTime } from '../../components/time.tsx';
import { nameOfCode, shortAddress } from '../../data/code-names.ts';
import { useFormat } from '../../data/format.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './code-table.module.css';

/** The cells of a code after the one that selects it. On phones they are arranged as an entry of a list. */
export function CodeCells({ code }: { readonly code: Code }) {
  const { codes } = useMessages();
  const format = useFormat();
  return (
    <>
      <div role="gridcell" className={styles.image}>
        <StoredCodeImage code={code} label="" size={32} />
      </div>
      <div role="rowheader" dir="auto" className={code.name ? styles.name : styles.unnamed} title={code.name}>
        {code.name || codes.unnamed}
      </div>
      <div role="gridcell" className={styles.url}>
        {code.type !== CodeType.STATIC && (
          <>
            <code title={code.scanUrl} className={styles.address}>
              {shortAddress(code.scanUrl).slice(0, -code.shortCode.length)}
            </code>
            <code>{code.shortCode}</code>
            <CopyButton text={code.scanUrl} what={`${codes.scanUrl}, ${nameOfCode(code)}`} excludeFromTabOrder />
          </>
        )}
      </div>
      <div role="gridcell" className={styles.target}>
        <CodeTarget code={code} />
      </div>
      <div role="gridcell" className={styles.folder}>
        {code.folder?.name}
      </div>
      <div role="gridcell" className={styles.tags} title={format.list(code.tags)}>
        {code.tags.slice(0, 1).map((tag) => (
          <span key={tag} className={styles.tag}>
            {tag}
          </span>
        ))}
        {code.tags.length > 1 && (
          <>
            <span aria-hidden className={styles.muted}>
              +{format.number(code.tags.length - 1)}
            </span>
            <span className="visually-hidden">{format.list(code.tags.slice(1))}</span>
          </>
        )}
      </div>
      <div role="gridcell" className={styles.scans}>
        {format.number(code.scanCount)}
        <span className={styles.unit}> {codes.columns.scans}</span>
      </div>
      <div role="gridcell" className={styles.state}>
        <CodeState code={code} />
      </div>
      <div role="gridcell" className={styles.changed}>
        <RelativeTime instant={code.updatedAt} />
      </div>
    </>
  );
}

/** Where a scan of the code leads, in one line. */
export function CodeTarget({ code }: { readonly code: Code }) {
  const { codes } = useMessages();
  if (code.type === CodeType.LANDING_PAGE) return <span className={styles.muted}>{codes.landingPage}</span>;
  if (code.type === CodeType.STATIC) return <span className={styles.muted}>{codes.fixedContent}</span>;
  return (
    <>
      {code.policy && (
        <span className={styles.rules} title={codes.hasRules}>
          <GitFork aria-hidden size={14} />
          <span className="visually-hidden">{codes.hasRules}. </span>
        </span>
      )}
      <span className={styles.address} title={code.targetUrl}>
        {shortAddress(code.targetUrl ?? '')}
      </span>
    </>
  );
}
