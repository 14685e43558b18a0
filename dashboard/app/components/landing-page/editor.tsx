import type { LandingPage } from '../../../../proto/gen/signpost/pages/v1/landing_page_pb.ts';
import type { FieldErrors } from '../../data/field-errors.ts';
import { LandingPageFields } from './fields.tsx';
import styles from './landing-page.module.css';
import { LandingPagePreview } from './preview.tsx';

interface LandingPageEditorProps {
  readonly value: LandingPage;
  readonly onChange: (page: LandingPage) => void;
  /** By the API's names: `landing_page.links[0].url`. */
  readonly errors?: FieldErrors | undefined;
}

/** Edits a landing page, beside a phone that shows it. */
export function LandingPageEditor({ value, onChange, errors = {} }: LandingPageEditorProps) {
  return (
    <div className={styles.editor}>
      <LandingPageFields value={value} onChange={onChange} errors={errors} />
      <LandingPagePreview page={value} />
    </div>
  );
}
