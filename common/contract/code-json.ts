import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import type { Code, Design } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { CODE_TYPE_BY_NAME, type CodeTypeName, nameOf } from './names.ts';

/** A QR code as REST bodies and events show it. Source: Resources and their fields; docs/contract.md, "The QR code resource". */
export interface CodeJson {
  id: string;
  type: CodeTypeName;
  short_code: string;
  scan_url: string;
  /** Dynamic codes only. */
  target_url?: string;
  /** Static codes only. */
  payload?: string;
  name: string | null;
  paused: boolean;
  folder: { id: string; name: string } | null;
  /** Names, in alphabetical order. */
  tags: string[];
  scan_count: number;
  campaign_type: string | null;
  /** Null: the platform's. */
  domain_id: string | null;
  design: DesignJson;
  /** RFC 3339, UTC, with milliseconds; as `updated_at`. */
  created_at: string;
  updated_at: string;
}

/** Colours of images: `#rgb` or `#rrggbb`. These two names are not in snake case: the contract gives them so. */
export interface DesignJson {
  foregroundColor: string;
  backgroundColor: string;
}

/** The code as JSON. */
export function codeJson(code: Code): CodeJson {
  return {
    id: code.id,
    type: nameOf(CODE_TYPE_BY_NAME, code.type),
    short_code: code.shortCode,
    scan_url: code.scanUrl,
    ...(code.targetUrl === undefined ? {} : { target_url: code.targetUrl }),
    ...(code.payload === undefined ? {} : { payload: code.payload }),
    name: code.name ?? null,
    paused: code.paused,
    folder: code.folder ? { id: code.folder.id, name: code.folder.name } : null,
    tags: code.tags,
    scan_count: Number(code.scanCount),
    campaign_type: code.campaignType ?? null,
    domain_id: code.domainId ?? null,
    design: designJson(code.design),
    created_at: timeJson(code.createdAt),
    updated_at: timeJson(code.updatedAt),
  };
}

/** The colours as JSON, black on white where none were chosen. */
export function designJson(design: Design | undefined): DesignJson {
  return {
    foregroundColor: design?.foregroundColor || '#000000',
    backgroundColor: design?.backgroundColor || '#ffffff',
  };
}

/** A time as JSON: RFC 3339, UTC, with milliseconds. Throws when there is none. */
export function timeJson(time: Timestamp | undefined): string {
  if (!time) throw new Error('a time is missing');
  return isoTime(timestampMs(time));
}

let latest = { ms: 0, text: new Date(0).toISOString() };

/** The same of a time in ms since 1970. Those of a batch are all the same one, and writing one takes as long as its row. */
export function isoTime(ms: number): string {
  if (ms !== latest.ms) latest = { ms, text: new Date(ms).toISOString() };
  return latest.text;
}
