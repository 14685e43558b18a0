import { ChevronDown } from 'lucide-react';
import { useId, useState } from 'react';
import { ToggleButton, ToggleButtonGroup } from 'react-aria-components';
import { Button } from '../../components/button.tsx';
import { Field } from '../../components/field.tsx';
import { Picker } from '../../components/picker.tsx';
import { useFormat } from '../../data/format.ts';
import { useMessages } from '../../messages/index.ts';
import { useCountries } from './countries.ts';
import { type DraftInstant, repetitionOf } from './draft-instant.ts';
import type { ConditionKind, DraftRule } from './policy-draft.ts';
import styles from './target-editor.module.css';
import { DAYS, DEVICES, SYSTEMS } from './target-words.ts';

interface ConditionFieldsProps {
  readonly kind: ConditionKind;
  readonly rule: DraftRule;
  /** Of the rule's conditions: `policy.rules[0].when`. */
  readonly path: string;
  readonly errors: ReadonlyMap<string, string>;
  readonly onChange: (rule: DraftRule) => void;
}

/** The fields of one condition. */
export function ConditionFields({ kind, rule, path, errors, onChange }: ConditionFieldsProps) {
  const { target, charts } = useMessages();
  const { form } = target;
  const format = useFormat();
  const countries = useCountries();
  const { weekly } = rule;
  const errorId = useId();
  // Those of the rule that are not offered here: they can be removed, and added again.
  const [otherSystems] = useState(() => rule.systems.filter((id) => !isOffered(id)));
  const setWeekly = (change: Partial<DraftRule['weekly']>) => onChange({ ...rule, weekly: { ...weekly, ...change } });
  const error = (field: string) => errors.get(`${path}.${field}`);
  const repeated = (instant: DraftInstant) => {
    const repetition = repetitionOf(instant);
    return repetition && form.repeatedTime[repetition];
  };
  switch (kind) {
    case 'period':
      return (
        <div className={styles.two}>
          <Field
            label={form.from}
            name={`${path}.from`}
            type="datetime-local"
            value={rule.from.typed}
            onChange={(typed) => onChange({ ...rule, from: { typed } })}
            description={repeated(rule.from) ?? form.zoneHelp(Intl.DateTimeFormat().resolvedOptions().timeZone)}
            error={error('from')}
            isOptional
          />
          <Field
            label={form.until}
            name={`${path}.until`}
            type="datetime-local"
            value={rule.until.typed}
            onChange={(typed) => onChange({ ...rule, until: { typed } })}
            description={repeated(rule.until)}
            error={error('until')}
            isOptional
          />
        </div>
      );
    case 'weekly':
      return (
        <>
          <Choices
            label={form.days}
            options={DAYS.map((id) => ({ id, label: format.weekday(id) }))}
            value={weekly.days}
            onChange={(days) => setWeekly({ days: DAYS.filter((day) => days.includes(day)) })}
            error={error('weekly.days')}
          />
          <div className={styles.three}>
            <Field
              label={form.from}
              type="time"
              value={weekly.from}
              onChange={(from) => setWeekly({ from })}
              error={error('weekly.from')}
            />
            <Field
              label={form.until}
              type="time"
              value={weekly.until}
              onChange={(until) => setWeekly({ until })}
              description={form.untilHelp}
              error={error('weekly.until')}
            />
            <Field
              label={form.zone}
              value={weekly.zone}
              onChange={(zone) => setWeekly({ zone })}
              error={error('weekly.time_zone')}
            />
          </div>
        </>
      );
    case 'countries': {
      const chosen =
        rule.countries.length === 0
          ? form.choose
          : format.list(rule.countries.map((code) => format.country(code) ?? target.preview.unknown));
      return (
        <>
          <div data-invalid={error('countries') ? true : undefined}>
            <Picker
              label={form.kinds.countries}
              options={[...countries, { id: 'unknown', label: target.preview.unknown }]}
              value={rule.countries}
              onChange={(chosen) => onChange({ ...rule, countries: chosen })}
              isMultiple
            >
              <Button look="field" aria-label={`${form.kinds.countries}: ${chosen}`} aria-describedby={errorId}>
                {chosen}
                <ChevronDown aria-hidden size={16} />
              </Button>
            </Picker>
          </div>
          {error('countries') && (
            <p id={errorId} className={styles.error}>
              {error('countries')}
            </p>
          )}
        </>
      );
    }
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

interface ChoicesProps {
  readonly label: string;
  readonly options: readonly { readonly id: string; readonly label: string }[];
  readonly value: readonly string[];
  readonly onChange: (value: readonly string[]) => void;
  readonly error: string | undefined;
}

/** Chooses several of a few values, each by a button. */
function Choices({ label, options, value, onChange, error }: ChoicesProps) {
  const errorId = useId();
  return (
    <div data-invalid={error !== undefined || undefined}>
      <ToggleButtonGroup
        aria-label={label}
        aria-describedby={errorId}
        selectionMode="multiple"
        selectedKeys={value}
        onSelectionChange={(keys) => onChange([...keys].map(String))}
        className={styles.choices}
      >
        {options.map(({ id, label }) => (
          <ToggleButton key={id} id={id} className={styles.choice}>
            {label}
          </ToggleButton>
        ))}
      </ToggleButtonGroup>
      {error !== undefined && (
        <p id={errorId} className={styles.error}>
          {error}
        </p>
      )}
    </div>
  );
}
