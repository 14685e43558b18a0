import { CODE_TYPE_BY_NAME } from '../../../../common/contract/names.ts';
import { CodeState } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import type { CodesFilter } from '../../data/code-lists.ts';

/** The filters of the page of codes, kept in its address. */
export interface CodesSearch {
  /** Part of a name or target, the start of a short code, or an id. */
  readonly q?: string;
  /** A folder's id, or `none`. */
  readonly folder?: string;
  /** Tags' ids. */
  readonly tags?: readonly string[];
  readonly state?: 'active' | 'paused' | 'deleted';
  readonly kind?: 'dynamic' | 'static' | 'landing_page';
  /** The code whose details are shown beside the list. */
  readonly code?: string;
}

export const STATES = ['active', 'paused', 'deleted'] as const;
export const KINDS = ['dynamic', 'static', 'landing_page'] as const;

/** Reads the filters from an address; what is not understood is left out. */
export function validateCodesSearch(search: Record<string, unknown>): CodesSearch {
  const { q, folder, tags, state, kind, code } = search;
  const knownState = STATES.find((each) => each === state);
  const knownKind = KINDS.find((each) => each === kind);
  const tagIds = Array.isArray(tags) ? tags.filter((tag) => typeof tag === 'string') : [];
  return {
    ...(typeof q === 'string' && q !== '' && { q }),
    ...(typeof folder === 'string' && folder !== '' && { folder }),
    ...(tagIds.length > 0 && { tags: tagIds }),
    ...(knownState && { state: knownState }),
    ...(knownKind && { kind: knownKind }),
    ...(typeof code === 'string' && code !== '' && { code }),
  };
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
