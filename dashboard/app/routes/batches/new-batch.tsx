import { useEffect, useMemo, useRef, useState } from 'react';
import { isLonger } from '../../../../common/codes/is-longer.ts';
import { Button } from '../../components/button.tsx';
import { CodeImage } from '../../components/code-image.tsx';
import { ColourField, colourOr, colourWarning, isColour } from '../../components/colour-field.tsx';
import { DomainSelect, placeholderScanUrl, useScanOrigin } from '../../components/domain-select.tsx';
import { Field } from '../../components/field.tsx';
import { FolderField, folderProblem, TagsField, tagsProblem } from '../../components/filing-fields.tsx';
import { LeaveGuard } from '../../components/leave-guard.tsx';
import { Notice, Page, Section } from '../../components/page.tsx';
import { useFormat } from '../../data/format.ts';
import { useMayEnter } from '../../data/session.ts';
import { useIsLeft } from '../../data/use-is-left.ts';
import { useOneAtATime } from '../../data/use-one-at-a-time.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './batches.module.css';
import { checkRows, guessMapping, type Mapping } from './check-rows.ts';
import { CheckStep, usePlanLimits } from './check-step.tsx';
import { FileStep } from './file-step.tsx';
import { MappingStep } from './mapping-step.tsx';
import { type CsvFile, type CsvProblem, readCsv } from './read-csv.ts';
import { type BatchOptions, NEW_BATCH, useBatchFailureText, useCreateBatch } from './use-create-batch.ts';

/** Makes codes out of a CSV file. Everything that can be checked is shown before anything is created. */
export function NewBatch() {
  const { batches, common, shell } = useMessages();
  const mayCreate = useMayEnter('editor');
  const { hasBatches } = usePlanLimits();
  const obstacle = !hasBatches ? batches.notInPlan : !mayCreate && common.notAllowed(shell.roles.editor);
  return <Page title={batches.new}>{obstacle ? <Notice>{obstacle}</Notice> : <NewBatchForm />}</Page>;
}

/** What is entered for all codes; the name is the file's until another one is typed. */
type EnteredOptions = Omit<BatchOptions, 'name'> & { readonly name?: string };

const NO_OPTIONS: EnteredOptions = { folder: '', tags: [], domainId: '', foreground: '', background: '' };

function NewBatchForm() {
  const [file, setFile] = useState<CsvFile | CsvProblem>();
  const [mapping, setMapping] = useState<Mapping>({});
  // Here and not in the step, so that a corrected file keeps them.
  const [entered, setEntered] = useState(NO_OPTIONS);
  const [isSent, setSent] = useState(false);
  // A large file may have been read only after the next one.
  const latest = useRef<unknown>(undefined);
  const read = async (chosen: File | Promise<File>) => {
    latest.current = chosen;
    const next = await readCsv(chosen);
    if (latest.current !== chosen) return;
    setFile(next);
    if ('header' in next) setMapping(guessMapping(next.header));
  };
  return (
    <div className={styles.steps}>
      <LeaveGuard isChanged={file !== undefined && 'rows' in file && !isSent} />
      <FileStep file={file} onFile={(chosen) => void read(chosen)} />
      {file && 'rows' in file && (
        <>
          <MappingStep file={file} mapping={mapping} onChange={setMapping} />
          {mapping.target_url !== undefined && (
            <CreateStep
              key={file.version}
              file={file}
              mapping={mapping}
              options={{ name: file.name.replace(/\.csv$/i, '').slice(0, 200), ...entered }}
              onChange={(changes) => setEntered({ ...entered, ...changes })}
              onSent={setSent}
            />
          )}
        </>
      )}
    </div>
  );
}

/** Width and height of the image of a code, in px. */
const PREVIEW_PX = 160;

interface CreateStepProps {
  readonly file: CsvFile;
  readonly mapping: Mapping;
  readonly options: BatchOptions;
  readonly onChange: (changes: Partial<BatchOptions>) => void;
  /** Called with whether these rows are being sent, or have been. */
  readonly onSent: (isSent: boolean) => void;
}

function CreateStep({ file, mapping, options, onChange: change, onSent }: CreateStepProps) {
  const messages = useMessages();
  const { batches, common, newCode } = messages;
  const failureText = useBatchFailureText();
  const format = useFormat();
  const { batchLimit } = usePlanLimits();
  const creation = useCreateBatch();
  // This page is still shown while the batch’s page is loaded, and again, as it was, after Back from there.
  const isLeft = useIsLeft(NEW_BATCH);
  const isSent = creation.isPending || (creation.isSuccess && isLeft);
  const oneAtATime = useOneAtATime();
  const send = () => {
    const batch = { rows: good, options, version: JSON.stringify([file.version, mapping]) };
    oneAtATime(() => creation.mutateAsync(batch));
  };
  useEffect(() => {
    onSent(isSent);
    return () => onSent(false);
  }, [isSent, onSent]);
  // 25,000 rows take long enough to be felt on every key.
  const checked = useMemo(
    () => checkRows(file, mapping, options.tags, messages),
    [file, mapping, options.tags, messages],
  );
  const { good } = checked;
  const scanUrl = placeholderScanUrl(useScanOrigin(options.domainId));
  const warning = colourWarning(options.foreground, options.background, messages);
  const isNameTooLong = isLonger(options.name, 200);
  const cannotCreate =
    good.length === 0 ||
    isNameTooLong ||
    (batchLimit !== undefined && good.length > batchLimit) ||
    folderProblem(options.folder) !== undefined ||
    tagsProblem(options.tags) !== undefined ||
    !(isColour(options.foreground) && isColour(options.background));
  return (
    <>
      <CheckStep file={file} checked={checked} />
      <Section title={batches.optionsTitle}>
        <div className={styles.pair}>
          <Field
            label={common.name}
            value={options.name}
            onChange={(name) => change({ name })}
            description={batches.nameHint}
            error={isNameTooLong ? newCode.nameTooLong : undefined}
            isOptional
          />
          <DomainSelect value={options.domainId} onChange={(domainId) => change({ domainId })} isForBatch />
          <FolderField value={options.folder} onChange={(folder) => change({ folder })} />
          <TagsField value={options.tags} onChange={(tags) => change({ tags })} />
          <ColourField
            label={newCode.foreground}
            value={options.foreground}
            onChange={(foreground) => change({ foreground })}
            fallback="#000000"
          />
          <ColourField
            label={newCode.background}
            value={options.background}
            onChange={(background) => change({ background })}
            fallback="#ffffff"
          />
        </div>
        <p className={styles.hint}>{batches.folderForAll}</p>
        <CodeImage
          text={scanUrl}
          label={newCode.previewImage}
          foreground={colourOr(options.foreground, '')}
          background={colourOr(options.background, '')}
          size={PREVIEW_PX}
        />
        {warning !== undefined && <Notice look="warning">{warning}</Notice>}
      </Section>
      {creation.isError && <Notice look="danger">{failureText(creation.error)}</Notice>}
      <div className={styles.submit}>
        <Button look="primary" isDisabled={cannotCreate} isPending={isSent} onPress={send}>
          {batches.create(good.length, format.number(good.length))}
        </Button>
      </div>
    </>
  );
}
