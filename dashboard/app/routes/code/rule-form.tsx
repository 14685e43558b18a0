import { ArrowDown, ArrowUp, Plus, Trash2, X } from 'lucide-react';
import { useRef } from 'react';
import { Button, IconButton } from '../../components/button.tsx';
import { Field } from '../../components/field.tsx';
import { passFocus } from '../../components/focus.ts';
import { Menu } from '../../components/menu.tsx';
import { Select } from '../../components/select.tsx';
import { useMessages } from '../../messages/index.ts';
import { ConditionFields } from './condition-fields.tsx';
import { CONDITIONS, type DraftRule } from './policy-draft.ts';
import { SplitForm } from './split-form.tsx';
import styles from './target-editor.module.css';

interface RuleFormProps {
  readonly rule: DraftRule;
  /** From 1. */
  readonly number: number;
  readonly isLast: boolean;
  /** What the core says, by the path of the field. */
  readonly errors: ReadonlyMap<string, string>;
  readonly onChange: (rule: DraftRule) => void;
  /** `to`: the new index. */
  readonly onMove: (to: number) => void;
  readonly onRemove: () => void;
}

const OUTCOMES = ['url', 'split', 'paused', 'gone'] as const;

/** A rule: the conditions that it has, what can be added, and what it leads to. */
export function RuleForm({ rule, number, isLast, errors, onChange, onMove, onRemove }: RuleFormProps) {
  const { form, rule: ruleName } = useMessages().target;
  const path = `policy.rules[${number - 1}]`;
  const addable = CONDITIONS.filter((kind) => !rule.conditions.includes(kind));
  const index = number - 1;
  const element = useRef<HTMLFieldSetElement>(null);
  const buttons = useRef<HTMLDivElement>(null);
  const add = useRef<HTMLButtonElement>(null);
  const move = (to: number) => {
    onMove(to);
    // At its new position the rule may lack the button that was pressed.
    passFocus(() => buttons.current?.querySelector('button'));
  };
  const addCondition = (kind: (typeof CONDITIONS)[number]) => {
    onChange({ ...rule, conditions: [...rule.conditions, kind] });
    // With the last one that can be added, the button is gone.
    passFocus(() =>
      element.current?.querySelector<HTMLElement>(':scope > fieldset:last-of-type :is(input, textarea, button)'),
    );
  };
  return (
    <fieldset ref={element} className={styles.rule}>
      <legend className="visually-hidden">{ruleName(number)}</legend>
      <header className={styles.ruleHeader}>
        <strong>{ruleName(number)}</strong>
        <div ref={buttons} className={styles.buttons}>
          {number > 1 && <IconButton icon={ArrowUp} label={form.up(number)} onPress={() => move(index - 1)} />}
          {!isLast && <IconButton icon={ArrowDown} label={form.down(number)} onPress={() => move(index + 1)} />}
          <IconButton icon={Trash2} label={form.removeRule(number)} onPress={onRemove} />
        </div>
      </header>
      <Field
        label={form.name}
        description={form.nameHelp}
        value={rule.name}
        onChange={(name) => onChange({ ...rule, name })}
        error={errors.get(`${path}.name`)}
        isOptional
      />
      {rule.conditions.map((kind) => (
        <fieldset key={kind} className={styles.condition}>
          <legend>{form.kinds[kind]}</legend>
          <ConditionFields kind={kind} rule={rule} path={`${path}.when`} errors={errors} onChange={onChange} />
          <div className={styles.remove}>
            <IconButton
              icon={X}
              label={form.removeCondition(form.kinds[kind])}
              onPress={() => {
                onChange({ ...rule, conditions: rule.conditions.filter((each) => each !== kind) });
                passFocus(() => add.current);
              }}
            />
          </div>
        </fieldset>
      ))}
      {rule.conditions.length === 0 && <p className={styles.muted}>{form.noConditions}</p>}
      {addable.length > 0 && (
        <div>
          <Menu
            label={form.addCondition}
            actions={addable.map((kind) => ({
              id: kind,
              label: form.kinds[kind],
              onAction: () => addCondition(kind),
            }))}
          >
            <Button ref={add} icon={Plus} look="quiet">
              {form.addCondition}
            </Button>
          </Menu>
        </div>
      )}
      <div className={styles.outcome}>
        <Select
          label={form.outcome}
          options={OUTCOMES.map((id) => ({ id, label: form.outcomes[id] }))}
          value={rule.outcome}
          onChange={(outcome) => onChange({ ...rule, outcome })}
        />
        {rule.outcome === 'url' && (
          <Field
            label={form.url}
            value={rule.url}
            onChange={(url) => onChange({ ...rule, url })}
            error={errors.get(`${path}.outcome.target_url`)}
            inputMode="url"
            mono
          />
        )}
      </div>
      {rule.outcome === 'split' && (
        <SplitForm
          variants={rule.variants}
          path={`${path}.outcome.split.variants`}
          errors={errors}
          onChange={(variants) => onChange({ ...rule, variants })}
        />
      )}
    </fieldset>
  );
}
