import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { DesignJson } from '../../common/contract/code-json.ts';
import { encodeId } from '../../common/contract/ids.ts';
import { storedLandingPage } from '../../common/contract/landing-page.ts';
import { CODE_TYPE_BY_NAME } from '../../common/contract/names.ts';
import { storedPolicy } from '../../common/targets/policy.ts';
import { type Code, CodeSchema } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { columnsOf, listed, type RowOf } from '../db/columns.ts';
import { SCAN_COUNT } from '../scans/reports/scan-counts.ts';
import { LABEL_COLUMNS } from '../taxonomy/label-sql.ts';
import { CodeEntity } from './entities.ts';
import { alphabetically } from './fields/tags.ts';

/** A code as Postgres stores it, with its labels: the names of its tags in any order. Ids are UUIDs. */
export type CodeRow = RowOf<CodeEntity> & { folder_name: string | null; tags: string[] };

/** The same with its total scans. */
export type ScannedCodeRow = CodeRow & { readonly scan_count: string };

const COLUMNS = columnsOf(CodeEntity);

/** The columns of a `CodeRow`, for queries over `codes c`. */
export const CODE_COLUMNS = `${listed(COLUMNS, 'c')}, ${LABEL_COLUMNS}`;

/** A code without its policy and landing page, which may have 60 KB each. */
export type CodeRowWithoutContent = Omit<CodeRow, 'policy' | 'landing_page'>;

/** The columns of a `CodeRowWithoutContent`, for the same queries. */
export const COLUMNS_WITHOUT_CONTENT = `${listed(
  COLUMNS.filter(({ name }) => name !== 'policy' && name !== 'landing_page'),
  'c',
)}, ${LABEL_COLUMNS}`;

/** The columns of a `ScannedCodeRow`, for the same queries. */
export const SCANNED_CODE_COLUMNS = `${CODE_COLUMNS}, ${SCAN_COUNT}`;

/**
 * Assignments of every update of a code. `greatest`, because `now()` is the start of the transaction: of two concurrent
 * changes, the second to commit may have begun first.
 */
export const CHANGED = 'version = version + 1, updated_at = greatest(updated_at, now())';

/** Columns that Postgres sets in a new code. */
const DEFAULTED: readonly (keyof CodeRow)[] = [
  'paused',
  'target_version',
  'version',
  'created_at',
  'updated_at',
  'deleted_at',
];

/** Columns of a new code that are inserted. */
export const NEW_COLUMNS = COLUMNS.filter(
  ({ name }) => name !== 'policy' && !DEFAULTED.some((defaulted) => defaulted === name),
);

/** The same for a code whose time of creation is known. */
export const TIMED_COLUMNS = COLUMNS.filter(
  (column) => NEW_COLUMNS.includes(column) || column.name === 'created_at' || column.name === 'updated_at',
);

/**
 * Columns that are not erased: the short code stays, so that no other code ever gets it, and so do the account and the
 * hostname, on which it is answered as deleted.
 */
const RETAINED: readonly (keyof CodeRow)[] = ['account_id', 'id', 'type', 'short_code', 'hostname', ...DEFAULTED];

/** Columns that are erased: all others. */
export const ERASED_COLUMNS = COLUMNS.filter(({ name }) => !RETAINED.some((retained) => retained === name));

/** What the row of a new dynamic code is made of. `tags`: names. */
export interface NewDynamicCode
  extends Pick<CodeRow, 'id' | 'account_id' | 'short_code' | 'name' | 'campaign_type' | 'created_at'> {
  readonly target_url: string;
  readonly folder: { readonly id: string; readonly name: string } | null;
  readonly tags: Iterable<string>;
  readonly domain: { readonly id: string; readonly hostname: string } | null;
  readonly design: DesignJson;
}

/** The row of a new dynamic code. */
export function newDynamicRow(code: NewDynamicCode): CodeRow {
  const { folder, domain, design, created_at } = code;
  return {
    id: code.id,
    account_id: code.account_id,
    type: 'dynamic',
    short_code: code.short_code,
    target_url: code.target_url,
    policy: null,
    target_version: 1,
    payload: null,
    landing_page: null,
    name: code.name,
    paused: false,
    folder_id: folder?.id ?? null,
    folder_name: folder?.name ?? null,
    tags: [...code.tags],
    campaign_type: code.campaign_type,
    domain_id: domain?.id ?? null,
    hostname: domain?.hostname ?? null,
    foreground_color: design.foregroundColor,
    background_color: design.backgroundColor,
    version: '1',
    created_at,
    updated_at: created_at,
    deleted_at: null,
  };
}

/** The printed URL: on the code's custom domain or else on `platformUrl`, which has no slash at its end. */
export function scanUrl(row: Pick<CodeRow, 'hostname' | 'short_code'>, platformUrl: string): string {
  return `${row.hostname === null ? platformUrl : `https://${row.hostname}`}/r/${row.short_code}`;
}

/** Converts a row with its total scans to the message. */
export function scannedCodeFrom(row: ScannedCodeRow, platformUrl: string): Code {
  return codeFrom(row, platformUrl, Number(row.scan_count));
}

/** Converts a row to the message. `scans`: the lifetime total. */
export function codeFrom(row: CodeRow, platformUrl: string, scans: number): Code {
  const { id, folder_id, domain_id } = row;
  return create(CodeSchema, {
    id: encodeId('qr', id),
    type: CODE_TYPE_BY_NAME[row.type],
    shortCode: row.short_code,
    scanUrl: scanUrl(row, platformUrl),
    ...(row.target_url === null ? {} : { targetUrl: row.target_url }),
    ...(row.policy ? { policy: storedPolicy(row.policy) } : {}),
    ...(row.payload === null ? {} : { payload: row.payload }),
    ...(row.landing_page ? { landingPage: storedLandingPage(row.landing_page) } : {}),
    ...(row.name === null ? {} : { name: row.name }),
    paused: row.paused,
    ...(folder_id === null ? {} : { folder: { id: encodeId('folder', folder_id), name: row.folder_name ?? '' } }),
    tags: alphabetically(row.tags),
    scanCount: BigInt(scans),
    ...(row.campaign_type === null ? {} : { campaignType: row.campaign_type }),
    ...(domain_id === null ? {} : { domainId: encodeId('domain', domain_id) }),
    design: { foregroundColor: row.foreground_color, backgroundColor: row.background_color },
    version: BigInt(row.version),
    createdAt: timestampFromDate(row.created_at),
    updatedAt: timestampFromDate(row.updated_at),
    ...(row.deleted_at === null ? {} : { deletedAt: timestampFromDate(row.deleted_at) }),
  });
}
