/** How many ended sessions and subjects are remembered. Beyond that, the one that ended first is forgotten. */
const MOST = 100_000;

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
 * afterwards. Kept in the memory of this process for as long as a session can last.
 */
export interface EndedSessions {
  has(session: Endable): boolean;
  /** Ends one session, by sign-out. */
  end(session: Endable): void;
  /** Ends the sessions that a logout token names: that of the provider, or, without one, all of the subject so far. */
  endAt(named: ProviderSession): void;
}

/** `lifetimeS`: how long a session can last, in s. `now`: in s since 1970. */
export function endedSessions(lifetimeS: number, now: () => number): EndedSessions {
  /** By key, when it ended; the earliest first. */
  const ended = new Map<string, number>();

  function add(key: string): void {
    ended.delete(key);
    ended.set(key, now());
    for (const [first, at] of ended) {
      if (ended.size <= MOST && at + lifetimeS >= now()) break;
      ended.delete(first);
    }
  }

  return {
    has({ id, subject, providerSession, startedAt }) {
      if (ended.has(`id ${id}`)) return true;
      if (providerSession !== undefined && ended.has(`session ${providerSession}`)) return true;
      const at = subject === undefined ? undefined : ended.get(`subject ${subject}`);
      return at !== undefined && startedAt <= at;
    },
    end: ({ id }) => add(`id ${id}`),
    endAt({ subject, providerSession }) {
      if (providerSession !== undefined) add(`session ${providerSession}`);
      else if (subject !== undefined) add(`subject ${subject}`);
    },
  };
}
