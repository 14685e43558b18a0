import type { MessageInitShape } from '@bufbuild/protobuf';
import { createClient } from '@connectrpc/connect';
import { createQueryOptions } from '@connectrpc/connect-query';
import { useQueries } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { PAGE_LIMIT } from '../../../common/contract/ranges.ts';
import {
  type Code,
  CodesService,
  type ListCodesRequestSchema,
  type ListCodesResponse,
} from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { TaxonomyService } from '../../../proto/gen/signpost/taxonomy/v1/taxonomy_pb.ts';
import { queryClient, refreshServices, STALE_MS } from './queries.ts';
import { transport } from './transport.ts';

/** Codes per call: the most that the core returns. */
export const PAGE = PAGE_LIMIT.most;

/** How long after the last scrolling the rows are loaded, in ms: dragging the scrollbar crosses thousands. */
const SETTLED_MS = 60;

const client = createClient(CodesService, transport);

/** Which codes a list has, without the part of them that a call returns. */
export type CodesFilter = Pick<
  MessageInitShape<typeof ListCodesRequestSchema>,
  'search' | 'folder' | 'tags' | 'state' | 'type'
>;

/** A list of codes of which only the visible part is loaded. */
export interface CodesList {
  /** Undefined until the first page has arrived. */
  readonly total: number | undefined;
  /** Whether the list may go on: the core searches only so many codes at a time. */
  readonly isLowerBound: boolean;
  readonly error: unknown;
  /** The code in this row; undefined while it is not loaded. */
  codeAt(index: number): Code | undefined;
  retry(): void;
}

/**
 * Reads the pages with the rows from `first` to before `last`, and the first one, which has the total. Calls for pages
 * that are out of sight again are aborted: nothing observes their queries any more.
 */
export function useCodesList(filter: CodesFilter, first: number, last: number): CodesList {
  const key = JSON.stringify(filter);
  const settled = useSettled(`${Math.floor(first / PAGE)} ${Math.floor(Math.max(first, last - 1) / PAGE)} ${key}`);
  // Another list begins at its top.
  const [from = 0, to = 0] = settled.endsWith(` ${key}`) ? settled.split(' ', 2).map(Number) : [];
  const pages = [...new Set([0, ...Array.from({ length: to - from + 1 }, (_, index) => from + index)])];
  const results = useQueries({ queries: pages.map((page) => pageQuery(filter, page)) });
  const failed = results.find(({ error, data }) => error && !data);
  const top = results[0]?.data;
  return {
    total: top && Number(top.total),
    isLowerBound: top?.totalIsLowerBound ?? false,
    error: failed?.error ?? null,
    codeAt: (index) => {
      const page = Math.floor(index / PAGE);
      const shown = results[pages.indexOf(page)]?.data ?? queryClient.getQueryData(pageQuery(filter, page).queryKey);
      return shown?.codes[index % PAGE];
    },
    retry: () => {
      for (const { refetch, isError } of results) if (isError) void refetch();
    },
  };
}

/** The query of a page, counted from 0. */
function pageQuery(filter: CodesFilter, page: number) {
  return createQueryOptions(CodesService.method.listCodes, pageInput(filter, page), { transport });
}

/**
 * Reads the codes of a page, as they are shown or have just been. Not by `pageQuery`, whose call would be aborted once
 * the page's rows are out of sight.
 */
export async function readPage(filter: CodesFilter, page: number): Promise<readonly Code[]> {
  const query = queryClient.getQueryCache().find<ListCodesResponse>({ queryKey: pageQuery(filter, page).queryKey });
  const isCurrent = query && !query.isStaleByTime(query.isActive() ? Number.POSITIVE_INFINITY : STALE_MS);
  const loaded = isCurrent ? query.state.data : undefined;
  return (loaded ?? (await client.listCodes(pageInput(filter, page)))).codes;
}

function pageInput(filter: CodesFilter, page: number) {
  return { ...filter, limit: PAGE, ...(page > 0 && { offset: page * PAGE }) };
}

/** Reads again what changes of codes change: codes, their lists, and how many of them folders and tags have. */
export function refreshCodes(): Promise<void> {
  return refreshServices(CodesService, TaxonomyService);
}

/** A value once it has not changed for a moment; the first one at once. */
function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), SETTLED_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
