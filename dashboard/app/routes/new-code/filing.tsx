import { ColourField } from '../../components/colour-field.tsx';
import { DomainSelect } from '../../components/domain-select.tsx';
import { Field } from '../../components/field.tsx';
import { FolderField, TagsField } from '../../components/filing-fields.tsx';
import { useMessages } from '../../messages/index.ts';
import type { DraftFieldsProps } from './content-fields.tsx';
import { hasDesign, hasDomain } from './draft.ts';
import styles from './new-code.module.css';

/** The fields by which people find the code again: its name, folder, tags and campaign type. */
export function FilingFields({ draft, onChange, errors }: DraftFieldsProps) {
  const { common, newCode } = useMessages();
  return (
    <>
      <Field
        label={common.name}
        value={draft.name}
        onChange={(name) => onChange({ name })}
        error={errors.name}
        description={newCode.nameHint}
        autoComplete="off"
        isOptional
      />
      <div className={styles.pair}>
        <FolderField value={draft.folder} onChange={(folder) => onChange({ folder })} error={errors.folder} />
        <TagsField value={draft.tags} onChange={(tags) => onChange({ tags })} error={errors.tags} />
      </div>
      {draft.kind === 'link' && (
        <Field
          label={newCode.campaignType}
          value={draft.campaignType}
          onChange={(campaignType) => onChange({ campaignType })}
          error={errors.campaign_type}
          autoComplete="off"
          isOptional
        />
      )}
    </>
  );
}

/** What the print contains besides the content. */
export function PrintFields({ draft, onChange, errors }: DraftFieldsProps) {
  const { newCode } = useMessages();
  return (
    <>
      {hasDomain(draft) && (
        <DomainSelect
          value={draft.domainId}
          onChange={(domainId) => onChange({ domainId })}
          error={errors.domain_id}
          isForBatch={false}
        />
      )}
      {hasDesign(draft) && (
        <div className={styles.pair}>
          <ColourField
            label={newCode.foreground}
            value={draft.foreground}
            onChange={(foreground) => onChange({ foreground })}
            fallback="#000000"
          />
          <ColourField
            label={newCode.background}
            value={draft.background}
            onChange={(background) => onChange({ background })}
            fallback="#ffffff"
          />
        </div>
      )}
    </>
  );
}
