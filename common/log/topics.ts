import { DAY_MS } from '../runtime/durations.ts';
import type { Topic } from './log.ts';

/** Scans for the recorder. Key: the code's id. Value: `signpost.scans.v1.Scan`. */
export const SCANS: Topic = { name: 'signpost.scans.v1', partitions: 12, retention: 7 * DAY_MS };

/**
 * Scan records that could not be processed, with the reason in the header `reason`. Key and value are unchanged, except
 * that an address of a visitor and a referring page are removed, that a value that is not a scan is omitted, that a key
 * has at most 1,000 characters, and that what would make the record too large is left out.
 */
export const SCANS_DEAD_LETTERS: Topic = { name: 'signpost.scans.dlq.v1', partitions: 1, retention: 90 * DAY_MS };

/** CloudEvents in binary mode. Key: the subject's id. */
export const EVENTS: Topic = { name: 'signpost.events.v1', partitions: 12, retention: 14 * DAY_MS };

/** Routes of codes and custom domains. Key and value: see `signpost.routes.v1.Route`. */
export const ROUTES: Topic = { name: 'signpost.routes.v1', partitions: 6, retention: 'compact' };

/** Every topic that Signpost creates or checks. */
export const TOPICS: readonly Topic[] = [SCANS, SCANS_DEAD_LETTERS, EVENTS, ROUTES];
