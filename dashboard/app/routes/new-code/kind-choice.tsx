import { FileText, Link2, type LucideIcon, Type, Wifi } from 'lucide-react';
import { Label, Radio, RadioGroup } from 'react-aria-components';
import { useMessages } from '../../messages/index.ts';
import { KINDS, type Kind } from './draft.ts';
import styles from './new-code.module.css';

const ICONS: Readonly<Record<Kind, LucideIcon>> = { link: Link2, landing_page: FileText, wifi: Wifi, text: Type };

/** Chooses what a scan does; everything else on the form depends on it. */
export function KindChoice({ value, onChange }: { readonly value: Kind; readonly onChange: (kind: Kind) => void }) {
  const { newCode } = useMessages();
  return (
    <RadioGroup value={value} onChange={(kind) => onChange(kind as Kind)} className={styles.kinds}>
      <Label className={styles.legend}>{newCode.type}</Label>
      <div className={styles.kindList}>
        {KINDS.map((kind) => {
          const Icon = ICONS[kind];
          return (
            <Radio key={kind} value={kind} className={styles.kind}>
              <Icon aria-hidden size={20} strokeWidth={1.5} />
              <strong>{newCode.kinds[kind]}</strong>
              <span className={styles.kindText}>{newCode.kindTexts[kind]}</span>
            </Radio>
          );
        })}
      </div>
    </RadioGroup>
  );
}
