/**
 * Keys of the advisory locks of all cores. The locks of a database share one key space, so all are listed here.
 */
export const LOCKS = {
  /** One core runs migrations at a time. */
  migration: 5_172_026,
  /** One relay publishes the outbox at a time. */
  relay: 5_172_027,
  /** The relay holds it exclusively while it sleeps, and transactions that write to the outbox share it otherwise. */
  relaySleeps: 5_172_031,
  /** One core publishes all routes again at a time. */
  routes: 5_172_030,
  /** One recorder creates partitions at a time. */
  scanMonths: 5_172_028,
  /** One process changes archives of scans at a time. */
  scanArchives: 5_172_029,
  /** One process folds increments into the counters of accounts and weeks at a time. */
  scanRollups: 5_172_031,
} as const;
