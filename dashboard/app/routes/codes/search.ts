import { CODE_TYPE_BY_NAME } from '../../../../common/contract/names.ts';
import { CodeState } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import type { CodesFilter } from '../../data/code-lists.ts';

/** The filters of the page of codes, kept in its address. */
export interface CodesSearch {
  /** Part of a name or target, the start of a short code, or an id. */
  readonly q?: string | undefined;
  /** A folder's id, or `none`. */
  readonly folder?: string | undefined;
  /** Tags' ids. */
  readonly tags?: readonly string[] | undefined;
  readonly state?: 'active' | 'paused' | 'deleted' | undefined;
  readonly kind?: 'dynamic' | 'static' | 'landing_page' | undefined;
  /** The code whose details are shown beside the list. */
  readonly code?: string | undefined;
}

export const STATES = ['active', 'paused', 'deleted'] as const;
export const KINDS = ['dynamic', 'static', 'landing_page'] as const;

/**
 * Reads the filters from an address. An invalid value becomes undefined instead of being left out: the router would
 * keep a filter that is left out as it is in the address.
 */
export function validateCodesSearch(search: Record<string, unknown>): CodesSearch {
  const { q, folder, tags, state, kind, code } = search;
  const tagIds = Array.isArray(tags) ? tags.filter((tag) => typeof tag === 'string') : [];
  return {
    // Digits in an address are a number to the router.
    q: textOf(typeof q === 'number' ? String(q) : q),
    folder: textOf(folder),
    tags: tagIds.length > 0 ? tagIds : undefined,
    state: STATES.find((each) => each === state),
    kind: KINDS.find((each) => each === kind),
    code: textOf(code),
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** The filters as the core takes them. */
export function filterOf({ q, folder, tags, state, kind }: CodesSearch): CodesFilter {
  return {
    ...(q !== undefined && { search: q }),
    ...(folder !== undefined && { folder }),
    ...(tags && { tags: [...tags] }),
    ...(state && { state: STATE_OF[state] }),
    ...(kind && { type: CODE_TYPE_BY_NAME[kind] }),
  };
}

const STATE_OF = { active: CodeState.ACTIVE, paused: CodeState.PAUSED, deleted: CodeState.DELETED } as const;
