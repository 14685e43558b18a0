import { Checkbox } from 'react-aria-components';
import { Field } from '../../components/field.tsx';
import { useMessages } from '../../messages/index.ts';
import { parametersProblem } from './draft-problems.ts';
import type { TargetDraft } from './policy-draft.ts';
import styles from './target-editor.module.css';

interface ParameterFieldsProps {
  readonly draft: TargetDraft;
  readonly onChange: (draft: TargetDraft) => void;
  /** What the core says of the parameters. */
  readonly error: string | undefined;
}

/** The parameters that are added to the target's address, and whether those of the scanned address are. */
export function ParameterFields({ draft, onChange, error }: ParameterFieldsProps) {
  const { form } = useMessages().target;
  const problem = parametersProblem(draft);
  return (
    <div className={styles.two}>
      <Field
        label={form.parameters}
        description={form.parametersHelp}
        value={draft.parameters}
        onChange={(parameters) => onChange({ ...draft, parameters, uneditedParameters: undefined })}
        error={problem ? form.parametersProblems[problem] : error}
        rows={2}
        isOptional
        mono
      />
      <Checkbox
        className={styles.check}
        isSelected={draft.passQuery}
        onChange={(passQuery) => onChange({ ...draft, passQuery })}
      >
        <span className={styles.box} aria-hidden="true" />
        {form.passQuery}
      </Checkbox>
    </div>
  );
}
