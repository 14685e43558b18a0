import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import type { Code, Design } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { CODE_TYPE_BY_NAME, type CodeTypeName, nameOf } from './names.ts';

/** A QR code in REST bodies and events. Source: docs/contract.md, "The QR code resource". */
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
  /** 1 when created, then incremented by every change but those of `scan_count`. */
  version: number;
  /** RFC 3339, UTC, with milliseconds; as `updated_at`, which never decreases. */
  created_at: string;
  updated_at: string;
}

/** Colours of images: `#rgb` or `#rrggbb`. The contract defines these two names in camel case. */
export interface DesignJson {
  foregroundColor: string;
  backgroundColor: string;
}

/** Converts a code to JSON. */
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
    version: Number(code.version),
    created_at: timeJson(code.createdAt),
    updated_at: timeJson(code.updatedAt),
  };
}

/** Converts colours to JSON; the default is black on white. */
export function designJson(design: Design | undefined): DesignJson {
  return {
    foregroundColor: design?.foregroundColor || '#000000',
    backgroundColor: design?.backgroundColor || '#ffffff',
  };
}

/** Converts a time to RFC 3339, UTC, with milliseconds. Throws if it is undefined. */
export function timeJson(time: Timestamp | undefined): string {
  if (!time) throw new Error('a time is missing');
  return isoTime(timestampMs(time));
}

/** More than the different times of a batch or change, which take turns. */
const MAX_CACHED = 100;
const cached = new Map<number, string>();

/**
 * The same for ms since 1970. It is cached: rows of a batch share their times, and formatting one takes as long as a
 * row.
 */
export function isoTime(ms: number): string {
  const known = cached.get(ms);
  if (known !== undefined) return known;
  if (cached.size === MAX_CACHED) cached.clear();
  const text = new Date(ms).toISOString();
  cached.set(ms, text);
  return text;
}
