import { useQuery } from '@connectrpc/connect-query';
import { Pencil } from 'lucide-react';
import { useState } from 'react';
import type { Code } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { type Outcome, Page, type Policy } from '../../../../proto/gen/signpost/targets/v1/policy_pb.ts';
import { TargetsService } from '../../../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { Button } from '../../components/button.tsx';
import { catchFocus } from '../../components/focus.ts';
import { Loaded } from '../../components/loaded.tsx';
import { Panel, Section } from '../../components/page.tsx';
import { useFormat } from '../../data/format.ts';
import { useMay } from '../../data/session.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './target.module.css';
import { TargetEditor } from './target-editor.tsx';
import { TargetPreview } from './target-preview.tsx';
import { useConditionWords } from './target-words.ts';

/** Where the code leads now, in sentences, or the form that changes it. */
export function TargetSection({ code }: { readonly code: Code }) {
  const { target: texts } = useMessages();
  const mayEdit = useMay('editor');
  // Undefined until it was edited: afterwards the button that began it has the focus.
  const [isEditing, setEditing] = useState<boolean>();
  const query = useQuery(TargetsService.method.getTarget, { id: code.id }, { enabled: !code.deletedAt });
  const target = query.data?.target;
  const close = () => {
    setEditing(false);
    // Of a deleted code nothing is left here.
    requestAnimationFrame(catchFocus);
  };
  if (isEditing && target) return <TargetEditor code={code} target={target} onClose={close} />;
  if (code.deletedAt) return null;
  return (
    <Section
      title={texts.title}
      actions={
        mayEdit &&
        target && (
          <Button icon={Pencil} autoFocus={isEditing === false} onPress={() => setEditing(true)}>
            {texts.edit}
          </Button>
        )
      }
    >
      <Loaded query={query}>
        {({ target }) => (
          <Panel>
            <TargetWords url={target?.targetUrl ?? ''} policy={target?.policy} />
            {target?.policy && target.policy.rules.length > 0 && <TargetPreview code={code} />}
          </Panel>
        )}
      </Loaded>
    </Section>
  );
}

/** A target in words: each rule with its conditions and its outcome, then where everybody else goes. */
function TargetWords({ url, policy }: { readonly url: string; readonly policy: Policy | undefined }) {
  const { target: texts } = useMessages();
  const format = useFormat();
  const conditionWords = useConditionWords();
  const rules = policy?.rules ?? [];
  const parameters = Object.entries(policy?.parameters ?? {}).map(([name, value]) => `${name}=${value}`);
  return (
    <>
      {rules.length === 0 ? (
        <Address url={url} />
      ) : (
        <ol className={styles.rules}>
          {rules.map(({ name, when, outcome }, index) => {
            const words = conditionWords(when);
            return (
              // biome-ignore lint/suspicious/noArrayIndexKey: rules are known by their position.
              <li key={index}>
                <span className={styles.number}>{index + 1}</span>
                <div>
                  <strong>{name || texts.rule(index + 1)}</strong>{' '}
                  <span className={styles.when}>{words.length > 0 ? words.join(' · ') : texts.always}</span>
                  <OutcomeWords outcome={outcome} />
                </div>
              </li>
            );
          })}
          <li>
            <span className={styles.number} aria-hidden />
            <div>
              <strong>{texts.otherwise}</strong>
              <Address url={url} />
            </div>
          </li>
        </ol>
      )}
      {(policy?.passQuery || parameters.length > 0) && (
        <p className={styles.muted}>
          {policy?.passQuery && `${texts.passQuery} `}
          {parameters.length > 0 && texts.adds(format.list(parameters))}
        </p>
      )}
    </>
  );
}

function OutcomeWords({ outcome }: { readonly outcome: Outcome | undefined }) {
  const { target: texts } = useMessages();
  const format = useFormat();
  const kind = outcome?.kind;
  if (kind?.case === 'targetUrl') return <Address url={kind.value} />;
  if (kind?.case === 'page') return <p>{kind.value === Page.GONE ? texts.pages.gone : texts.pages.paused}</p>;
  if (kind?.case !== 'split') return null;
  const sum = kind.value.variants.reduce((total, { weight }) => total + weight, 0);
  return (
    <ul className={styles.variants}>
      {kind.value.variants.map(({ label, weight, targetUrl }) => (
        <li key={label}>
          <span className={styles.share}>{format.percent(weight / sum)}</span>
          <span>{label}</span>
          <Address url={targetUrl} />
        </li>
      ))}
    </ul>
  );
}

function Address({ url }: { readonly url: string }) {
  return (
    <a href={url} target="_blank" rel="noreferrer" className={styles.address}>
      {url}
    </a>
  );
}
