import { create } from '@bufbuild/protobuf';
import { foldedName } from '../../../../common/codes/folded-name.ts';
import { isLonger } from '../../../../common/codes/is-longer.ts';
import { parseWebAddress } from '../../../../common/codes/web-address.ts';
import { MAX_LABEL_CHARACTERS, MAX_TAGS } from '../../../../common/contract/limits.ts';
import { type BatchRowInput, BatchRowInputSchema } from '../../../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { folderProblem, tagsProblem } from '../../components/filing-fields.tsx';
import type { Messages } from '../../messages/index.ts';
import type { CsvFile } from './read-csv.ts';

/** What a column can be. */
export const FIELDS = ['target_url', 'name', 'folder', 'tags', 'external_ref', 'campaign_type'] as const;
export type FieldName = (typeof FIELDS)[number];

/** Which column, from 0, has which field. */
export type Mapping = Readonly<Partial<Record<FieldName, number>>>;

/** Names that people give such columns, in lower case and without punctuation. */
const NAMES: Readonly<Record<FieldName, readonly string[]>> = {
  target_url: ['targeturl', 'target', 'url', 'link', 'website', 'destination', 'zielurl', 'ziel', 'adresse'],
  name: ['name', 'title', 'label', 'titel', 'bezeichnung'],
  folder: ['folder', 'group', 'ordner'],
  tags: ['tags', 'tag', 'labels', 'schlagwörter'],
  external_ref: [
    'externalref',
    'externalreference',
    'externalid',
    'reference',
    'ref',
    'id',
    'sku',
    'referenz',
    'nummer',
  ],
  campaign_type: ['campaigntype', 'campaign', 'kampagne', 'kampagnentyp'],
};

/** What the columns are, by their names. */
export function guessMapping(header: readonly string[]): Mapping {
  const names = header.map((name) => name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, ''));
  const mapping: Partial<Record<FieldName, number>> = {};
  for (const field of FIELDS) {
    const wanted = NAMES[field].find((name) => names.includes(name));
    if (wanted !== undefined) mapping[field] = names.indexOf(wanted);
  }
  return mapping;
}

/** Something about a row. `isError`: the core would not create its code. */
export interface RowProblem {
  /** From 0. */
  readonly row: number;
  /** The number that a spreadsheet shows beside it. */
  readonly number: number;
  readonly isError: boolean;
  readonly text: string;
  readonly value: string;
}

export interface CheckedRows {
  /** Rows without errors, in the file's order. */
  readonly good: readonly BatchRowInput[];
  readonly problems: readonly RowProblem[];
  /** Positions of rows with errors, in order. */
  readonly bad: readonly number[];
}

/**
 * Reads the rows, gives each the tags for all codes as well, and checks what can be checked here. The core decides
 * finally, and rows fail one by one. `tagsForAll`: if no code can have them, the problem is theirs and none of the
 * rows'.
 */
export function checkRows(
  { rows, numbers }: CsvFile,
  mapping: Mapping,
  tagsForAll: readonly string[],
  { common, batches }: Messages,
): CheckedRows {
  const added = byFoldedName(tagsProblem(tagsForAll) ? [] : tagsForAll);
  const good: BatchRowInput[] = [];
  const problems: RowProblem[] = [];
  const bad: number[] = [];
  const refs = new Set<string>();
  const texts = batches.rowProblems;
  for (const [row, cells] of rows.entries()) {
    const cell = (field: FieldName) => {
      const column = mapping[field];
      return column === undefined ? '' : (cells[column] ?? '').trim();
    };
    const before = problems.length;
    const report = (isError: boolean, text: string, value: string) =>
      problems.push({ row, number: numbers[row] ?? 0, isError, text, value });
    const [url, name, folder, ref] = [cell('target_url'), cell('name'), cell('folder'), cell('external_ref')];
    const own = byFoldedName(tagsIn(cell('tags')));
    const tags = [...own.values(), ...[...added].flatMap(([folded, tag]) => (own.has(folded) ? [] : tag))];
    const address = parseWebAddress(url);
    if ('problem' in address) report(true, common.urlProblems[address.problem], url);
    if (isLonger(name, 200)) report(true, texts.name, name);
    if (isLonger(ref, 128)) report(true, texts.external_ref, ref);
    if (isLonger(cell('campaign_type'), 64)) report(true, texts.campaign_type, cell('campaign_type'));
    if (own.size > MAX_TAGS) report(true, texts.tags, cell('tags'));
    else if (tags.length > MAX_TAGS) report(true, texts.tags_for_all, cell('tags'));
    if (problems.length > before) {
      bad.push(row);
      continue;
    }
    if (folderProblem(folder)) report(false, texts.folder_name, folder);
    const longTags = tags.filter((tag) => isLonger(tag, MAX_LABEL_CHARACTERS));
    if (longTags.length > 0) report(false, texts.tag_name, longTags.join(', '));
    if (ref !== '' && refs.has(ref)) report(false, texts.duplicate_ref, ref);
    refs.add(ref);
    good.push(
      create(BatchRowInputSchema, {
        targetUrl: url,
        tags,
        ...(name !== '' && { name }),
        ...(folder !== '' && { folder }),
        ...(ref !== '' && { externalRef: ref }),
        ...(cell('campaign_type') !== '' && { campaignType: cell('campaign_type') }),
      }),
    );
  }
  return { good, problems, bad };
}

/** A tag in quotes, in which each quote is doubled, or one without separators. */
const TAG = /\s*(?:"((?:[^"]|"")*)"\s*(?=[,;|]|$)|([^,;|]+))/g;

/** Tags of one cell: separated by commas, semicolons or bars. */
function tagsIn(cell: string): string[] {
  return [...cell.matchAll(TAG)]
    .map(([, quoted, plain = '']) => (quoted?.replaceAll('""', '"') ?? plain).trim())
    .filter((tag) => tag !== '');
}

/** The cell that is read as these tags. */
export function tagsCell(tags: readonly string[]): string {
  return tags.map((tag) => (/[",;|]/.test(tag) ? `"${tag.replaceAll('"', '""')}"` : tag)).join(',');
}

/** Each tag once, as it was named first, by its name as the core compares it. */
function byFoldedName(tags: readonly string[]): ReadonlyMap<string, string> {
  const byName = new Map<string, string>();
  for (const tag of tags) {
    const name = foldedName(tag);
    if (!byName.has(name)) byName.set(name, tag);
  }
  return byName;
}
