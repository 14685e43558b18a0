import { CODE_TYPE_BY_NAME, type CodeTypeName, nameOf } from '../../../common/contract/names.ts';
import {
  CodeOrder,
  CodeState,
  CodeType,
  type ListCodesRequest,
} from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { LOOKED_UP, lookUpCode } from '../../db/look-up-code.ts';
import { caseFolded } from '../../taxonomy/entities.ts';
import { codesOfTags, codesWithAnyTag, withAnyTag } from '../../taxonomy/label-sql.ts';

/**
 * What a list of codes selects. Each combination has its own statement, so that Postgres chooses the right index.
 * Their first parameters, $1 to $5, are `FilterValues`.
 */
export interface Filter {
  readonly state: 'live' | 'active' | 'paused' | 'deleted';
  readonly type: CodeTypeName | 'any';
  readonly folder: 'any' | 'none' | 'one';
  /** `read`: looks up the codes of the tags. `checked`: looks up codes by the other filters, and checks their tags. */
  readonly tags: 'any' | 'read' | 'checked';
  /** Whether the page starts after a position. */
  readonly cursor: boolean;
  /** Whether the search is for a text or for one code. */
  readonly search: 'none' | 'text' | 'code';
  readonly order: 'newest' | 'oldest';
}

/**
 * The account; UUIDs of folder and tags; the position after which the page starts; the UUID of the code searched for.
 */
export type FilterValues = readonly [
  accountId: string,
  folderId: string | null,
  tagIds: readonly string[] | null,
  after: string | null,
  codeId: string | null,
];

const STATES = {
  live: CodeState.UNSPECIFIED,
  active: CodeState.ACTIVE,
  paused: CodeState.PAUSED,
  deleted: CodeState.DELETED,
} as const;

/** The parts of a filter that the request's enums determine. */
export function filterOf({ state, type, order }: ListCodesRequest): Pick<Filter, 'state' | 'type' | 'order'> {
  return {
    state: nameOf(STATES, state),
    type: type === CodeType.UNSPECIFIED ? 'any' : nameOf(CODE_TYPE_BY_NAME, type),
    order: order === CodeOrder.OLDEST ? 'oldest' : 'newest',
  };
}

/** Identifies a filter in the names of statements. */
export function nameOfFilter({ state, type, folder, tags, cursor, search, order }: Filter): string {
  const parts = [state, type, folder, tags, cursor ? 'after' : 'start', search, order];
  return parts.join('_');
}

/** The direction in which a list sorts the ids of its codes. */
export const directionOf = ({ order }: Filter) => (order === 'newest' ? 'desc' : 'asc');

/**
 * The codes among which a filter selects, for `from`: `c`. Those of tags are looked up one by one in the order of the
 * list, until the page is full: if few of them fulfil the rest of the filter, all are.
 */
export function codesOf(filter: Filter): string {
  if (filter.tags === 'any') return 'codes c';
  if (filter.tags === 'checked') return `codes c cross join ${withAnyTag('c.id', '$3')} tagged`;
  const tagged = codesWithAnyTag('$3', directionOf(filter));
  return `(${tagged}) tagged cross join ${lookUpCode('*', 'tagged.code_id', '$1')} c`;
}

/** The ids of these codes, as they are sorted. */
export const idOf = ({ tags }: Filter) => (tags === 'read' ? 'tagged.code_id' : 'c.id');

/** The order of a filter's list, for `order by`. */
export const orderOf = (filter: Filter) => `${idOf(filter)} ${directionOf(filter)}`;

/**
 * The condition on `codesOf` that an index fulfils in the order of the list, so that nothing is sorted: codes_listed
 * for all codes, codes_in_folder for a folder, codes_deleted, codes_paused, and codes_not_dynamic for the other types.
 * Those that are read by their tags come in that order from code_tags_by_tag, sorted only if there are several tags.
 */
export function indexedCondition(filter: Filter, id = idOf(filter)): string {
  const { state, type, folder, tags, cursor, search, order } = filter;
  return [
    ...(tags === 'read' ? [] : ['c.account_id = $1']),
    `c.deleted_at is ${state === 'deleted' ? 'not null' : 'null'}`,
    folder === 'none'
      ? 'c.folder_id is null and $2::uuid is null'
      : folder === 'one'
        ? 'c.folder_id = $2::uuid'
        : '$2::uuid is null',
    ...(tags === 'any' ? ['$3::uuid[] is null'] : []),
    cursor ? `${id} ${order === 'newest' ? '<' : '>'} $4::uuid` : '$4::uuid is null',
    search === 'code' ? `${id} = $5::uuid` : '$5::uuid is null',
    ...(state === 'paused' ? ['c.paused'] : []),
    ...(isTypeIndexed(filter) ? [`c.type = '${type}' and c.type <> 'dynamic'`] : []),
  ].join(' and ');
}

/**
 * A query for the number of codes on the list. More than `LOOKED_UP` codes read by their tags are joined; no
 * statistics make a full join compare each with each.
 */
export function countQuery(filter: Filter): string {
  const counted = `select count(*) from ${codesOf(filter)} where ${indexedCondition(filter)}`;
  if (filter.tags !== 'read') return counted;
  const tagged = codesWithAnyTag('$3', directionOf(filter));
  return `
    select case when (select count(*) from (${codesOfTags('$3')} limit ${LOOKED_UP + 1}) few) <= ${LOOKED_UP} then (${counted})
      else (
        select count(c.id) filter (where tagged.code_id is not null)
        from (select id from codes c where c.account_id = $1 and ${indexedCondition(filter, 'c.id')}) c
          full join (${tagged}) tagged on tagged.code_id = c.id
      ) end as count`;
}

/** The condition that is tested on each code that fulfils `indexedCondition`. $6 is the text to search for. */
export function testedCondition(filter: Filter): string {
  const { state, type, search } = filter;
  return [
    search === 'text' ? contains('$6::text') : '$6::text is null',
    ...(state === 'active' ? ['not c.paused'] : []),
    ...(type !== 'any' && !isTypeIndexed(filter) ? [`c.type = '${type}'`] : []),
  ].join(' and ');
}

/**
 * Whether an index, other than that of tags, finds the codes of the filter: there is one for each condition, none for
 * several.
 */
export function isIndexed(filter: Filter): boolean {
  const isStateIndexed = filter.state === 'paused' || filter.state === 'deleted';
  return [filter.folder !== 'any', isStateIndexed, isTypeIndexed(filter)].filter(Boolean).length === 1;
}

/** Whether an index finds the codes of the type: few codes are not dynamic, and the index has no deleted ones. */
const isTypeIndexed = ({ state, type }: Filter) => state !== 'deleted' && type !== 'any' && type !== 'dynamic';

/**
 * Compared like names of labels, in NFC and with case folded: in lower case, `ΟΔΟΣ` would not be `οδος`, nor `STRASSE`
 * `Straße`. `strpos` takes 0.9 µs a code, `ilike` 1.2 µs.
 */
function contains(parameter: string): string {
  // A subquery, so that the text is converted once and not for each code.
  const text = `(select ${caseFolded(composed(parameter))})`;
  const column = (name: string) => caseFolded(composed(`c.${name}`));
  return `(strpos(${column('name')}, ${text}) > 0 or strpos(${column('target_url')}, ${text}) > 0
    or starts_with(${caseFolded('c.short_code')}, ${text})) is true`;
}

/** Text in NFC. `normalize` takes 10 µs, more than all the rest, so it is left out where it would change nothing. */
function composed(text: string): string {
  return `case when octet_length(${text}) = char_length(${text}) or ${text} is nfc normalized then ${text}
    else normalize(${text}, nfc) end`;
}
