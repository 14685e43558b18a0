import { Checkbox } from '../../components/checkbox.tsx';
import { Field } from '../../components/field.tsx';
import { LandingPageFields } from '../../components/landing-page/fields.tsx';
import { Select } from '../../components/select.tsx';
import type { FieldErrors } from '../../data/field-errors.ts';
import { useFormat } from '../../data/format.ts';
import { useMessages } from '../../messages/index.ts';
import { bytesOf, type Draft, MAX_PAYLOAD_BYTES } from './draft.ts';

export interface DraftFieldsProps {
  readonly draft: Draft;
  readonly onChange: (changes: Partial<Draft>) => void;
  readonly errors: FieldErrors;
}

/** What a scan leads to or shows, depending on the kind. */
export function ContentFields({ draft, onChange, errors }: DraftFieldsProps) {
  const { newCode } = useMessages();
  const format = useFormat();
  switch (draft.kind) {
    case 'link':
      return (
        <Field
          label={newCode.url}
          value={draft.url}
          onChange={(url) => onChange({ url })}
          error={errors.target_url}
          description={newCode.urlHint}
          placeholder="https://"
          inputMode="url"
          autoComplete="off"
          mono
        />
      );
    case 'landing_page':
      return <LandingPageFields value={draft.page} onChange={(page) => onChange({ page })} errors={errors} />;
    case 'text':
      return (
        <Field
          label={newCode.text}
          value={draft.text}
          onChange={(text) => onChange({ text })}
          error={errors.payload}
          description={newCode.textHint(format.number(bytesOf(draft.text)), format.number(MAX_PAYLOAD_BYTES))}
          rows={5}
        />
      );
    case 'wifi':
      return <WifiFields draft={draft} onChange={onChange} errors={errors} />;
  }
}

const SECURITIES = ['wpa', 'wep', 'none'] as const;

function WifiFields({ draft, onChange, errors }: DraftFieldsProps) {
  const { newCode } = useMessages();
  return (
    <>
      <Field
        label={newCode.ssid}
        value={draft.ssid}
        onChange={(ssid) => onChange({ ssid })}
        error={errors['wifi.ssid']}
        autoComplete="off"
      />
      <Select
        label={newCode.security}
        options={SECURITIES.map((id) => ({ id, label: newCode.securities[id] }))}
        value={draft.security}
        onChange={(security) => onChange({ security })}
      />
      {draft.security !== 'none' && (
        <Field
          label={newCode.password}
          value={draft.password}
          onChange={(password) => onChange({ password })}
          error={errors['wifi.password']}
          description={newCode.passwordHint}
          autoComplete="off"
          mono
        />
      )}
      <Checkbox isSelected={draft.hidden} onChange={(hidden) => onChange({ hidden })}>
        {newCode.hidden}
      </Checkbox>
    </>
  );
}
