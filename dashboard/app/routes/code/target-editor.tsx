import { useMutation } from '@tanstack/react-query';
import { Plus } from 'lucide-react';
import { useRef, useState } from 'react';
import { Checkbox } from 'react-aria-components';
import type { Code } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import type { Target } from '../../../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { Button } from '../../components/button.tsx';
import { Actions } from '../../components/dialog.tsx';
import { Field } from '../../components/field.tsx';
import { focusFirstInvalid, passFocus } from '../../components/focus.ts';
import { LeaveGuard } from '../../components/leave-guard.tsx';
import { Notice, Panel, Section } from '../../components/page.tsx';
import { SaveFailed } from '../../components/save-failed.tsx';
import { errorInfo, reasonOf } from '../../data/error-reason.ts';
import { fieldErrors } from '../../data/field-errors.ts';
import { isResultUnknown } from '../../data/idempotency-key.ts';
import { refreshTarget } from '../../data/refresh-target.ts';
import { useSession } from '../../data/session.ts';
import { showToast } from '../../data/toasts.ts';
import { useLatest } from '../../data/use-latest.ts';
import { useMessages } from '../../messages/index.ts';
import { badAddresses, badDates, emptyConditions, parametersProblem } from './draft-problems.ts';
import { type DraftRule, draftOf, isChanged, newRule, policyOf } from './policy-draft.ts';
import { RuleForm } from './rule-form.tsx';
import { targets, useRollBack, versionAfterLostAnswer } from './target-changes.ts';
import styles from './target-editor.module.css';
import { TargetPreview } from './target-preview.tsx';

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
  const { target: texts, common } = useMessages();
  const { form } = texts;
  const { email } = useSession();
  const rollBack = useRollBack(code.id);
  const [initial, setInitial] = useState(() => draftOf(target));
  const [draft, setDraft] = useState(initial);
  const latest = useLatest(draft);
  const [wasSent, setSent] = useState(false);
  // The fields of dates that were typed in part when the form was sent: to the form they are empty.
  const [unfinished, setUnfinished] = useState<readonly string[]>([]);
  const element = useRef<HTMLFormElement>(null);
  const addRule = useRef<HTMLButtonElement>(null);
  // The version that saving replaces: the one that the form began with, or another person's that the notice told of.
  const [replaced, setReplaced] = useState(target.version);
  // Whether an earlier call may have saved the target although its answer was lost.
  const mayBeSaved = useRef(false);
  const save = useMutation({
    mutationFn: async () =>
      targets.setTarget({
        id: code.id,
        targetUrl: draft.url.trim(),
        policy: policyOf(draft),
        note: draft.note.trim(),
        expectedVersion: mayBeSaved.current ? await versionAfterLostAnswer(code.id, replaced, email) : replaced,
      }),
  });
  const empty = emptyConditions(draft);
  const errors = new Map(save.error ? fieldErrors(save.error, common.invalid) : []);
  const dates = [...badDates(draft)].map(([field, problem]) => [field, form[problem]] as const);
  const addresses = [...badAddresses(draft)].map(([field, problem]) => [field, common.urlProblems[problem]] as const);
  if (wasSent) for (const field of empty) errors.set(field, form.emptyCondition);
  for (const field of unfinished) errors.set(field, form.unfinishedDate);
  for (const [field, sentence] of wasSent ? [...dates, ...addresses] : dates) errors.set(field, sentence);
  // What the core said names rules and variants by their positions: it is forgotten when these change.
  const setRules = (rules: readonly DraftRule[], isMoved = true) => {
    if (isMoved && save.isError) save.reset();
    setUnfinished([]);
    setDraft({ ...draft, rules });
  };
  const setRule = (index: number, rule: DraftRule) => {
    const rules = draft.rules.map((each, at) => (at === index ? rule : each));
    setRules(rules, rule.variants.length !== draft.rules[index]?.variants.length);
  };
  const moveRule = (index: number, to: number) => {
    const rules = [...draft.rules];
    rules.splice(to, 0, ...rules.splice(index, 1));
    setRules(rules);
  };
  const badParameters = parametersProblem(draft);
  const hasRules = draft.rules.length > 0;
  const submit = async () => {
    if (save.isPending) return;
    setSent(true);
    const begun = unfinishedDates(element.current);
    setUnfinished(begun);
    const isBad = [empty, begun, dates, addresses].some((fields) => fields.length > 0) || badParameters;
    if (isBad) return focusFirstInvalid(element.current);
    try {
      const { target: saved } = await save.mutateAsync();
      const version = saved?.version ?? replaced;
      mayBeSaved.current = false;
      if (isChanged(latest.current, draft)) {
        // What was typed meanwhile has not been sent: the form goes on from what was.
        setInitial(draft);
        setReplaced(version);
        setSent(false);
      } else onClose();
      await refreshTarget();
      if (version === replaced) return showToast(form.unchanged);
      showToast(form.saved(version), { undo: () => void rollBack(replaced, version) });
    } catch (error) {
      if (isResultUnknown(error)) {
        mayBeSaved.current = true;
        // What is shown below and after Cancel may be the version before.
        void refreshTarget();
      }
      if (reasonOf(error) !== 'TARGET_CHANGED') return focusFirstInvalid(element.current);
      setReplaced(Number(errorInfo(error)?.metadata.version));
      // The history below shows the other change.
      await refreshTarget();
    }
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
              onChange={(changed) => setRule(index, changed)}
              onMove={(to) => moveRule(index, to)}
              onRemove={() => {
                setRules(draft.rules.filter((each) => each.key !== rule.key));
                passFocus(() => addRule.current);
              }}
            />
          ))}
          {draft.rules.length < MAX_RULES && (
            <div>
              <Button
                ref={addRule}
                icon={Plus}
                onPress={() => setDraft({ ...draft, rules: [...draft.rules, newRule()] })}
              >
                {form.addRule}
              </Button>
            </div>
          )}
          <div className={styles.two}>
            <Field
              label={form.parameters}
              description={form.parametersHelp}
              value={draft.parameters}
              onChange={(parameters) => setDraft({ ...draft, parameters, uneditedParameters: undefined })}
              error={badParameters ? form.parametersProblems[badParameters] : errors.get('policy.parameters')}
              rows={2}
              isOptional
              mono
            />
            <Checkbox
              className={styles.check}
              isSelected={draft.passQuery}
              onChange={(passQuery) => setDraft({ ...draft, passQuery })}
            >
              <span className={styles.box} aria-hidden="true" />
              {form.passQuery}
            </Checkbox>
          </div>
          <Field
            label={form.note}
            description={form.noteHelp}
            value={draft.note}
            onChange={(note) => setDraft({ ...draft, note })}
            error={errors.get('note')}
            maxLength={200}
            isOptional
          />
          {hasRules && (
            <TargetPreview
              code={code}
              draft={{ targetUrl: draft.url.trim(), policy: policyOf(draft) }}
              problem={dates[0] ?? addresses[0]}
            />
          )}
          {reasonOf(save.error) === 'TARGET_CHANGED' ? (
            <Notice look="danger">{form.conflict}</Notice>
          ) : (
            save.error && (
              <SaveFailed
                code={code}
                error={save.error}
                onRestored={() => {
                  save.reset();
                  void refreshTarget();
                }}
              />
            )
          )}
          <Actions>
            <Button onPress={onClose}>{common.cancel}</Button>
            <Button look="primary" type="submit" isPending={save.isPending}>
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
