import type { MessageInitShape } from '@bufbuild/protobuf';
import { useQuery } from '@connectrpc/connect-query';
import { ChevronDown } from 'lucide-react';
import { useState } from 'react';
import type { Code } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { Page, type PolicySchema } from '../../../../proto/gen/signpost/targets/v1/policy_pb.ts';
import { TargetsService } from '../../../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { Button } from '../../components/button.tsx';
import fieldStyles from '../../components/field.module.css';
import { Field } from '../../components/field.tsx';
import { Picker } from '../../components/picker.tsx';
import { Select } from '../../components/select.tsx';
import { useErrorText } from '../../data/error-text.ts';
import { fieldErrors } from '../../data/field-errors.ts';
import { useFormat } from '../../data/format.ts';
import { useMessages } from '../../messages/index.ts';
import { useCountries } from './countries.ts';
import { dateProblem, typedInstant } from './draft-instant.ts';
import styles from './target.module.css';
import { DEVICES, SYSTEMS } from './target-words.ts';

interface TargetPreviewProps {
  readonly code: Code;
  /** What is not saved yet, to be previewed instead of the current target. */
  readonly draft?: { readonly targetUrl: string; readonly policy: MessageInitShape<typeof PolicySchema> } | undefined;
  /** Why the draft cannot be previewed: the path of a field and what is wrong with it. */
  readonly problem?: readonly [field: string, sentence: string] | undefined;
}

/** Previews where a described visitor would be redirected: the core evaluates the target as gateways do. */
export function TargetPreview({ code, draft, problem }: TargetPreviewProps) {
  const { target: texts, charts, common } = useMessages();
  const format = useFormat();
  const errorText = useErrorText();
  const { preview } = texts;
  const countries = useCountries();
  const [country, setCountry] = useState('');
  const countryName = format.country(country) ?? preview.unknown;
  const [language, setLanguage] = useState('');
  const [device, setDevice] = useState<string>('mobile');
  const [system, setSystem] = useState<string>('ios');
  const [at, setAt] = useState('');
  const instant = typedInstant(at);
  const atProblem = dateProblem(at);
  const { data, error } = useQuery(
    TargetsService.method.previewTarget,
    {
      id: code.id,
      country,
      language: language.trim(),
      device,
      operatingSystem: system,
      ...(instant && { at: instant }),
      ...draft,
    },
    {
      retry: false,
      staleTime: 0,
      enabled: problem === undefined && atProblem === undefined,
    },
  );
  const explanation = problem?.[1] ?? (error && errorText(error));
  const [field] = problem ?? [...fieldErrors(error, common.invalid).keys()];
  const rule = field?.match(/^policy\.rules\[(\d+)\]/)?.[1];
  const place = data?.result.case === 'page' ? pageName(data.result.value, texts.pages) : data?.result.value;
  return (
    <section className={styles.preview} aria-label={preview.title}>
      <h3>{preview.title}</h3>
      {draft && <p className={styles.muted}>{preview.ofDraft}</p>}
      <div className={styles.previewFields}>
        <div className={fieldStyles.field}>
          <span className={fieldStyles.label} aria-hidden>
            {preview.country}
          </span>
          <Picker
            label={preview.country}
            options={[{ id: '', label: preview.unknown }, ...countries]}
            value={[country]}
            onChange={([chosen = '']) => setCountry(chosen)}
          >
            <Button look="field" aria-label={`${preview.country}: ${countryName}`}>
              {countryName}
              <ChevronDown aria-hidden size={16} />
            </Button>
          </Picker>
        </div>
        <Field label={preview.language} value={language} onChange={setLanguage} placeholder="de-CH" maxLength={35} />
        <Select
          label={preview.device}
          options={DEVICES.map((id) => ({ id, label: charts.devices[id] }))}
          value={device}
          onChange={setDevice}
        />
        <Select
          label={preview.system}
          options={[
            ...SYSTEMS.map((name) => ({ id: name.toLowerCase(), label: name })),
            { id: 'unknown', label: preview.unknown },
          ]}
          value={system}
          onChange={setSystem}
        />
        <Field
          label={preview.at}
          type="datetime-local"
          value={at}
          onChange={setAt}
          description={preview.now}
          error={atProblem && texts.form[atProblem]}
        />
      </div>
      <div className={styles.result} role="status">
        {explanation ? (
          `${rule === undefined ? '' : `${texts.rule(Number(rule) + 1)}: `}${explanation}`
        ) : (
          <>
            {code.paused ? preview.resultPaused : preview.result}
            <strong>{atProblem ? '…' : (place ?? '…')}</strong>
            {data && !atProblem && (
              <span className={styles.muted}>
                {data.rule > 0 ? preview.byRule(data.rule, data.ruleName) : preview.byNone}
                {data.variant !== '' && ` ${preview.variant(data.variant)}`}
              </span>
            )}
          </>
        )}
      </div>
    </section>
  );
}

function pageName(page: Page, pages: { readonly paused: string; readonly gone: string }): string {
  return page === Page.GONE ? pages.gone : pages.paused;
}
