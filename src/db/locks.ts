/**
 * Keys of the advisory locks of all cores. They share one key space with those of idempotency keys, which are hashes
 * and take none of these numbers. Members of groups of the log (`common/log`) use locks with two keys, which are apart.
 */
export const LOCKS = {
  /** One core runs migrations at a time. */
  migration: 5_172_026,
  /** One relay publishes the outbox at a time. */
  relay: 5_172_027,
  /** Held exclusively by the relay while it sleeps; otherwise shared by transactions that write to the outbox. */
  relaySleeps: 5_172_031,
  /** One core publishes all routes again at a time. */
  routes: 5_172_030,
  /** One recorder creates partitions at a time. */
  scanMonths: 5_172_028,
  /** One process changes archives of scans at a time. */
  scanArchives: 5_172_029,
  /** One process at a time adds increments to the counters of accounts and weeks. */
  scanRollups: 5_172_032,
  /** One process at a time finishes interrupted deletions of scans. */
  scanDeletions: 5_172_033,
} as const;
