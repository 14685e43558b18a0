import { createHmac, hkdfSync } from 'node:crypto';
import { type Timestamp, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import type { Logger } from 'pino';
import { throttledReport } from '../../common/runtime/throttled-report.ts';
import type { Core } from './core.ts';

/** How many ended sessions and subjects are remembered. Beyond that, the one that ended first is forgotten. */
const MOST = 100_000;
/** The most that the core takes in one call. */
const MOST_AT_ONCE = 1_000;

/** How old the list of the sessions that ended at other instances may be when a session is used, in ms. */
const FRESH_MS = 2_000;
/** How long a call to the core may take, in ms: requests with a session wait for it. */
const CALL_MS = 2_000;
/** How much earlier than the previous list the next one begins, in ms: calls of other instances take some time. */
const OVERLAP_MS = 60_000;

/** The shortest time between two log lines about calls to the core that failed, in ms. */
const REPORT_MS = 10_000;

/** What identifies a session at the OpenID provider; logout tokens name either or both. */
export interface ProviderSession {
  readonly subject?: string | undefined;
  readonly providerSession?: string | undefined;
}

/** A session, as far as it can be ended. */
export interface Endable extends ProviderSession {
  readonly id: string;
  /** s since 1970. */
  readonly startedAt: number;
}

/**
 * The sessions that ended before they expired: a cookie that was copied before its session ended is worthless
 * afterwards. Each instance remembers them for as long as a session can last, and learns from the core of those that
 * ended at others. While the core is unavailable it knows its own only; but a session without the core opens nothing.
 */
export interface EndedSessions {
  has(session: Endable): Promise<boolean>;
  /** Ends one session, by sign-out. If the core does not answer, other instances learn of it later. */
  end(session: Endable): Promise<void>;
  /**
   * Ends the sessions that a logout token names: that of the provider, or, without one, all of the subject so far.
   * Resolves with whether other instances learn of it.
   */
  endAt(named: ProviderSession): Promise<boolean>;
}

/**
 * `lifetimeS`: how long a session can last, in s. `secretKey`: what all instances share. `most`: how many ended
 * sessions and subjects are remembered, and as many that the core does not know yet.
 */
export function endedSessions(options: {
  lifetimeS: number;
  secretKey: Buffer;
  core: Core;
  logger: Logger;
  most?: number;
}): EndedSessions {
  const { lifetimeS, core, logger, most = MOST } = options;
  const hmacKey = new Uint8Array(hkdfSync('sha256', options.secretKey, '', 'signpost dashboard ended sessions', 32));
  const reportFailure = throttledReport(REPORT_MS, (failures, err: unknown) => {
    logger.warn({ failures, err }, 'the dashboard could not reach a core about ended sessions; it is tried again');
  });
  const failed = (error: unknown) => reportFailure(1, error);
  /** When each session ended, in s since 1970, by key; mostly the earliest first. */
  const ended = new Map<string, number>();
  /** Keys that the core does not know yet. */
  const unsent = new Set<string>();
  let listed: Timestamp | undefined;
  let freshUntil = Number.NEGATIVE_INFINITY;
  let refreshing: Promise<void> | undefined;

  /** Sessions and people stay unknown to the core: it stores an HMAC. */
  const keyOf = (name: string) => createHmac('sha256', hmacKey).update(name).digest('base64');

  function add(key: string, at: number): void {
    ended.delete(key);
    ended.set(key, at);
    const now = Date.now() / 1_000;
    for (const [first, endedAt] of ended) {
      if (ended.size <= most && endedAt + lifetimeS >= now) break;
      ended.delete(first);
    }
  }

  async function sendUnsent(): Promise<void> {
    while (unsent.size > 0) {
      const keys = [...unsent].slice(0, MOST_AT_ONCE);
      await core.accounts.endSessions({ keys: keys.map((key) => Buffer.from(key, 'base64')) }, { timeoutMs: CALL_MS });
      for (const key of keys) unsent.delete(key);
    }
  }

  async function listEnded(): Promise<void> {
    const since = listed && timestampFromMs(timestampMs(listed) - OVERLAP_MS);
    const { sessions, asOf } = await core.accounts.listEndedSessions(since ? { since } : {}, { timeoutMs: CALL_MS });
    for (const { key, endedAt } of sessions.toReversed()) {
      const [name, at] = [Buffer.from(key).toString('base64'), endedAt ? timestampMs(endedAt) / 1_000 : 0];
      if ((ended.get(name) ?? 0) < at) add(name, at);
    }
    listed = asOf;
  }

  async function refresh(): Promise<void> {
    // Neither waits for the other: what the core cannot be told must not keep this instance from what the core knows.
    await Promise.all([listEnded().catch(failed), sendUnsent().catch(failed)]);
    freshUntil = performance.now() + FRESH_MS;
    refreshing = undefined;
  }

  /** Ends what these keys name, here at once. Resolves with whether the core knows. */
  async function endKey(name: string): Promise<boolean> {
    const key = keyOf(name);
    add(key, Date.now() / 1_000);
    if (unsent.size < most) unsent.add(key);
    const isQueued = unsent.has(key);
    try {
      await sendUnsent();
      return isQueued;
    } catch (error) {
      failed(error);
      return false;
    }
  }

  return {
    async has({ id, subject, providerSession, startedAt }) {
      if (performance.now() > freshUntil) {
        refreshing ??= refresh();
        await refreshing;
      }
      if (ended.has(keyOf(`id ${id}`))) return true;
      if (providerSession !== undefined && ended.has(keyOf(`session ${providerSession}`))) return true;
      const at = subject === undefined ? undefined : ended.get(keyOf(`subject ${subject}`));
      return at !== undefined && startedAt <= Math.floor(at);
    },
    async end({ id }) {
      await endKey(`id ${id}`);
    },
    async endAt({ subject, providerSession }) {
      return endKey(providerSession !== undefined ? `session ${providerSession}` : `subject ${subject ?? ''}`);
    },
  };
}
