import { useState } from 'react';
import { Field } from '../../components/field.tsx';
import { useFormat } from '../../data/format.ts';
import { useMessages } from '../../messages/index.ts';
import { Choices } from './choices.tsx';
import { CountryChoice } from './country-choice.tsx';
import { type DraftInstant, repetitionOf } from './draft-instant.ts';
import type { ConditionKind, DraftRule } from './policy-draft.ts';
import styles from './target-editor.module.css';
import { DAYS, DEVICES, SYSTEMS } from './target-words.ts';

interface RuleFieldsProps {
  readonly rule: DraftRule;
  /** Of the rule's conditions: `policy.rules[0].when`. */
  readonly path: string;
  readonly errors: ReadonlyMap<string, string>;
  readonly onChange: (rule: DraftRule) => void;
}

interface ConditionFieldsProps extends RuleFieldsProps {
  readonly kind: ConditionKind;
}

/** The fields of one condition. */
export function ConditionFields({ kind, ...fields }: ConditionFieldsProps) {
  const { rule, path, errors, onChange } = fields;
  const { target, charts } = useMessages();
  const { form } = target;
  // Those of the rule that are not offered here: they can be removed, and added again.
  const [otherSystems] = useState(() => rule.systems.filter((id) => !isOffered(id)));
  const error = (field: string) => errors.get(`${path}.${field}`);
  switch (kind) {
    case 'period':
      return <PeriodFields {...fields} />;
    case 'weekly':
      return <WeeklyFields {...fields} />;
    case 'countries':
      return (
        <CountryChoice
          value={rule.countries}
          onChange={(countries) => onChange({ ...rule, countries })}
          error={error('countries')}
        />
      );
    case 'languages':
      return (
        <Field
          label={form.languagesHelp}
          value={rule.languages}
          onChange={(languages) => onChange({ ...rule, languages })}
          error={error('languages')}
        />
      );
    case 'devices':
      return (
        <Choices
          label={form.kinds.devices}
          options={DEVICES.map((id) => ({ id, label: charts.devices[id] }))}
          value={rule.devices}
          onChange={(devices) => onChange({ ...rule, devices })}
          error={error('devices')}
        />
      );
    case 'systems':
      return (
        <Choices
          label={form.kinds.systems}
          options={[
            ...SYSTEMS.map((name) => ({ id: name.toLowerCase(), label: name })),
            { id: 'unknown', label: target.preview.unknown },
            ...otherSystems.map((id) => ({ id, label: id })),
          ]}
          value={rule.systems}
          onChange={(systems) => onChange({ ...rule, systems })}
          error={error('operating_systems')}
        />
      );
  }
}

function isOffered(system: string): boolean {
  return system === 'unknown' || SYSTEMS.some((name) => name.toLowerCase() === system);
}

/** From when until when a rule applies. */
function PeriodFields({ rule, path, errors, onChange }: RuleFieldsProps) {
  const { form } = useMessages().target;
  const repeated = (instant: DraftInstant) => {
    const repetition = repetitionOf(instant);
    return repetition && form.repeatedTime[repetition];
  };
  return (
    <div className={styles.two}>
      <Field
        label={form.from}
        name={`${path}.from`}
        type="datetime-local"
        value={rule.from.typed}
        onChange={(typed) => onChange({ ...rule, from: { typed } })}
        description={repeated(rule.from) ?? form.zoneHelp(Intl.DateTimeFormat().resolvedOptions().timeZone)}
        error={errors.get(`${path}.from`)}
        isOptional
      />
      <Field
        label={form.until}
        name={`${path}.until`}
        type="datetime-local"
        value={rule.until.typed}
        onChange={(typed) => onChange({ ...rule, until: { typed } })}
        description={repeated(rule.until)}
        error={errors.get(`${path}.until`)}
        isOptional
      />
    </div>
  );
}

/** On which days of the week a rule applies, and from when until when on each. */
function WeeklyFields({ rule, path, errors, onChange }: RuleFieldsProps) {
  const { form } = useMessages().target;
  const format = useFormat();
  const { weekly } = rule;
  const setWeekly = (change: Partial<DraftRule['weekly']>) => onChange({ ...rule, weekly: { ...weekly, ...change } });
  const error = (field: string) => errors.get(`${path}.weekly.${field}`);
  return (
    <>
      <Choices
        label={form.days}
        options={DAYS.map((id) => ({ id, label: format.weekday(id) }))}
        value={weekly.days}
        onChange={(days) => setWeekly({ days: DAYS.filter((day) => days.includes(day)) })}
        error={error('days')}
      />
      <div className={styles.three}>
        <Field
          label={form.from}
          type="time"
          value={weekly.from}
          onChange={(from) => setWeekly({ from })}
          error={error('from')}
        />
        <Field
          label={form.until}
          type="time"
          value={weekly.until}
          onChange={(until) => setWeekly({ until })}
          description={form.untilHelp}
          error={error('until')}
        />
        <Field
          label={form.zone}
          value={weekly.zone}
          onChange={(zone) => setWeekly({ zone })}
          error={error('time_zone')}
        />
      </div>
    </>
  );
}
