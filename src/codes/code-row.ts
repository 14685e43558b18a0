import { create, fromJson, type JsonValue } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { DesignJson } from '../../common/contract/code-json.ts';
import { encodeId } from '../../common/contract/ids.ts';
import { CODE_TYPE_BY_NAME, type CodeTypeName } from '../../common/contract/names.ts';
import { type Code, CodeSchema } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { LandingPageSchema } from '../../proto/gen/signpost/pages/v1/landing_page_pb.ts';
import { LABEL_COLUMNS } from '../taxonomy/labels.ts';
import { alphabetically } from './tags.ts';

/** A code as Postgres has it, with its labels. Ids are UUIDs. */
export interface CodeRow {
  id: string;
  account_id: string;
  type: CodeTypeName;
  short_code: string;
  target_url: string | null;
  payload: string | null;
  /** A `LandingPage` in protobuf's JSON form. */
  landing_page: unknown;
  name: string | null;
  paused: boolean;
  folder_id: string | null;
  folder_name: string | null;
  tags: string[];
  campaign_type: string | null;
  domain_id: string | null;
  hostname: string | null;
  foreground_color: string;
  background_color: string;
  version: string;
  created_at: Date;
  updated_at: Date;
  deleted_at: Date | null;
}

/** The columns of a `CodeRow` over `codes c`. */
export const CODE_COLUMNS = `
  c.id, c.account_id, c.type, c.short_code, c.target_url, c.payload, c.landing_page, c.name, c.paused, c.folder_id,
  c.campaign_type, c.domain_id, c.hostname, c.foreground_color, c.background_color, c.version, c.created_at,
  c.updated_at, c.deleted_at, ${LABEL_COLUMNS}`;

/** A dynamic code that has just come into being. `tags`: names. */
export function newDynamicRow(
  code: Pick<CodeRow, 'id' | 'account_id' | 'short_code' | 'name' | 'campaign_type' | 'created_at'> & {
    readonly target_url: string;
    readonly folder: { readonly id: string; readonly name: string } | null;
    readonly tags: Iterable<string>;
    readonly domain: { readonly id: string; readonly hostname: string } | null;
    readonly design: DesignJson;
  },
): CodeRow {
  const { folder, domain, design, created_at } = code;
  return {
    id: code.id,
    account_id: code.account_id,
    type: 'dynamic',
    short_code: code.short_code,
    target_url: code.target_url,
    payload: null,
    landing_page: null,
    name: code.name,
    paused: false,
    folder_id: folder?.id ?? null,
    folder_name: folder?.name ?? null,
    tags: [...code.tags].sort(alphabetically),
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

/** The URL that is printed: on the code's own domain, or on the platform's (`platformUrl`, without a slash). */
export function scanUrl(row: Pick<CodeRow, 'hostname' | 'short_code'>, platformUrl: string): string {
  return `${row.hostname === null ? platformUrl : `https://${row.hostname}`}/r/${row.short_code}`;
}

/** The code as the contract has it. `scans`: its lifetime total. */
export function codeFrom(row: CodeRow, platformUrl: string, scans: number): Code {
  const { id, folder_id, domain_id } = row;
  return create(CodeSchema, {
    id: encodeId('qr', id),
    type: CODE_TYPE_BY_NAME[row.type],
    shortCode: row.short_code,
    scanUrl: scanUrl(row, platformUrl),
    ...(row.target_url === null ? {} : { targetUrl: row.target_url }),
    ...(row.payload === null ? {} : { payload: row.payload }),
    ...(row.landing_page ? { landingPage: fromJson(LandingPageSchema, row.landing_page as JsonValue) } : {}),
    ...(row.name === null ? {} : { name: row.name }),
    paused: row.paused,
    ...(folder_id === null ? {} : { folder: { id: encodeId('folder', folder_id), name: row.folder_name ?? '' } }),
    tags: row.tags,
    scanCount: BigInt(scans),
    ...(row.campaign_type === null ? {} : { campaignType: row.campaign_type }),
    ...(domain_id === null ? {} : { domainId: encodeId('domain', domain_id) }),
    design: { foregroundColor: row.foreground_color, backgroundColor: row.background_color },
    createdAt: timestampFromDate(row.created_at),
    updatedAt: timestampFromDate(row.updated_at),
  });
}
