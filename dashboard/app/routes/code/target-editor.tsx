import { Plus } from 'lucide-react';
import { useRef, useState } from 'react';
import type { Code } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import type { Target } from '../../../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { Button } from '../../components/button.tsx';
import { Actions } from '../../components/dialog.tsx';
import { Field } from '../../components/field.tsx';
import { focusFirstInvalid, passFocus } from '../../components/focus.ts';
import { LeaveGuard } from '../../components/leave-guard.tsx';
import { Notice, Panel, Section } from '../../components/page.tsx';
import { SaveFailed } from '../../components/save-failed.tsx';
import { reasonOf } from '../../data/error-reason.ts';
import { fieldErrors } from '../../data/field-errors.ts';
import { refreshTarget } from '../../data/refresh-target.ts';
import { useIsMounted } from '../../data/use-is-mounted.ts';
import { useLatest } from '../../data/use-latest.ts';
import { useMessages } from '../../messages/index.ts';
import { parametersProblem } from './draft-problems.ts';
import { ParameterFields } from './parameter-fields.tsx';
import { draftOf, isChanged, policyOf } from './policy-draft.ts';
import { RuleForm } from './rule-form.tsx';
import styles from './target-editor.module.css';
import { previewProblem, targetErrors } from './target-errors.ts';
import { TargetPreview } from './target-preview.tsx';
import { useDraftRules } from './use-draft-rules.ts';
import { useSaveTarget } from './use-save-target.ts';

/** The maximum number of rules, as in policy.proto. Source: docs/targets.md, "Policies". */
const MAX_RULES = 20;

interface TargetEditorProps {
  readonly code: Code;
  /** What the form begins with; later ones are ignored. */
  readonly target: Target;
  readonly onClose: () => void;
}

/** Changes the address, the rules and the parameters of a target as one version. */
export function TargetEditor({ code, target, onClose }: TargetEditorProps) {
  const messages = useMessages();
  const { target: texts, common } = messages;
  const { form } = texts;
  const [initial, setInitial] = useState(() => draftOf(target));
  const [draft, setDraft] = useState(initial);
  const latest = useLatest(draft);
  const isMounted = useIsMounted();
  const [wasSent, setSent] = useState(false);
  const element = useRef<HTMLFormElement>(null);
  const addRule = useRef<HTMLButtonElement>(null);
  const { save, isPending, error, reset } = useSaveTarget({
    id: code.id,
    target,
    onSaved: (saved) => {
      if (!isMounted()) return;
      if (!isChanged(latest.current, saved)) return onClose();
      // What was typed meanwhile has not been sent: the form goes on from what was.
      setInitial(saved);
      setSent(false);
    },
    onFailed: () => focusFirstInvalid(element.current),
  });
  const { unfinished, setUnfinished, ...rules } = useDraftRules({ draft, setDraft, onMoved: () => error && reset() });
  const rejected = error ? fieldErrors(error, common.invalid) : undefined;
  const errors = targetErrors(draft, { wasSent, unfinished, rejected }, messages);
  const hasRules = draft.rules.length > 0;
  const submit = async () => {
    if (isPending) return;
    setSent(true);
    const begun = unfinishedDates(element.current);
    setUnfinished(begun);
    const problems = targetErrors(draft, { wasSent: true, unfinished: begun }, messages);
    if (problems.size > 0 || parametersProblem(draft)) return focusFirstInvalid(element.current);
    await save(draft);
  };
  return (
    <Section title={form.title}>
      <LeaveGuard isChanged={isChanged(draft, initial)} />
      <form
        ref={element}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <Panel>
          <Field
            label={form.url}
            description={hasRules ? form.urlHelp : undefined}
            value={draft.url}
            onChange={(url) => setDraft({ ...draft, url })}
            error={errors.get('target_url')}
            inputMode="url"
            autoFocus
            mono
          />
          {hasRules && (
            <div>
              <h3>{form.rules}</h3>
              <p className={styles.muted}>{form.rulesHelp}</p>
            </div>
          )}
          {draft.rules.map((rule, index) => (
            <RuleForm
              key={rule.key}
              rule={rule}
              number={index + 1}
              isLast={index === draft.rules.length - 1}
              errors={errors}
              onChange={(changed) => rules.replace(index, changed)}
              onMove={(to) => rules.move(index, to)}
              onRemove={() => {
                rules.remove(index);
                passFocus(() => addRule.current);
              }}
            />
          ))}
          {draft.rules.length < MAX_RULES && (
            <div>
              <Button
                ref={addRule}
                icon={Plus}
                onPress={() => {
                  rules.add();
                  // With the last one that can be added, the button is gone.
                  passFocus(() => element.current?.querySelector<HTMLElement>(`.${styles.rule}:last-of-type input`));
                }}
              >
                {form.addRule}
              </Button>
            </div>
          )}
          <ParameterFields draft={draft} onChange={setDraft} error={errors.get('policy.parameters')} />
          <Field
            label={form.note}
            description={form.noteHelp}
            value={draft.note}
            onChange={(note) => setDraft({ ...draft, note })}
            error={errors.get('note')}
            isOptional
          />
          {hasRules && (
            <TargetPreview
              code={code}
              draft={{ targetUrl: draft.url.trim(), policy: policyOf(draft) }}
              problem={previewProblem(draft, messages)}
            />
          )}
          {reasonOf(error) === 'TARGET_CHANGED' ? (
            <Notice look="danger">{form.conflict}</Notice>
          ) : (
            error && (
              <SaveFailed
                code={code}
                error={error}
                onRestored={() => {
                  reset();
                  void refreshTarget();
                }}
              />
            )
          )}
          <Actions>
            <Button onPress={onClose}>{common.cancel}</Button>
            <Button look="primary" type="submit" isPending={isPending}>
              {form.save}
            </Button>
          </Actions>
        </Panel>
      </form>
    </Section>
  );
}

/** The names of fields in which only a part of a date was typed, as a day without a time. */
function unfinishedDates(form: HTMLFormElement | null): string[] {
  const fields = form?.querySelectorAll<HTMLInputElement>('input[type=datetime-local][name]') ?? [];
  return [...fields].filter(({ validity }) => validity.badInput).map(({ name }) => name);
}
