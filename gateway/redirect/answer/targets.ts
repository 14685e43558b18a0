import type { Logger } from 'pino';
import { agentOf } from '../../../common/contract/user-agent.ts';
import { BoundedMap } from '../../../common/runtime/bounded-map.ts';
import {
  type CompiledPolicy,
  compilePolicy,
  type Decision,
  decide,
  type Visitor,
} from '../../../common/targets/evaluate.ts';
import { acceptedLanguages } from '../../../common/targets/language.ts';
import { hashOfCode, shareOfCode } from '../../../common/targets/variant-share.ts';
import { type FoundRoute, readPolicy } from '../routes/route-record.ts';
import type { Visit } from './visit.ts';

/** The number of compiled policies that are kept, and the memory that they take. */
const MAX_COMPILED = 4_000;
const MAX_COMPILED_BYTES = 32 * 1024 * 1024;
/** Nearly all visitors send one of a few hundred headers. */
const MAX_LANGUAGES = 1_000;

interface Compiled extends CompiledPolicy {
  readonly codeId: string;
  /** The version of the record: versions of targets are assigned again after a restore of Postgres. */
  readonly version: number;
}

/** The preferred language by header; empty if none is known. */
const languages = new Map<string, string>();

/** Decides what scans of codes with a policy lead to; `policy`: the one in the route. */
export type DecideTarget = (route: FoundRoute, policy: Buffer, visit: Visit, query: string) => Decision;

export function targetDecider(logger: Logger): DecideTarget {
  /**
   * Keyed by the hash of the code's id; of two codes with one hash, the one scanned last is kept. With ids as keys a
   * look-up takes longer, as V8 looks for the key among all strings of the process.
   */
  const compiled = new BoundedMap<number, Compiled>(MAX_COMPILED, MAX_COMPILED_BYTES);

  function compiledPolicy(hash: number, route: FoundRoute, policy: Buffer): CompiledPolicy {
    const { codeId, version } = route;
    const existing = compiled.get(hash);
    if (existing?.version === version && existing.codeId === codeId) return existing;
    const { rules, destinations, bytes } = compile(route, policy);
    const added = { codeId, version, rules, destinations, bytes };
    compiled.set(hash, added, bytes);
    return added;
  }

  /** A time zone that is newer than this gateway must not stop redirects. */
  function compile({ codeId, targetUrl }: FoundRoute, bytes: Buffer): CompiledPolicy {
    try {
      return compilePolicy(readPolicy(bytes), targetUrl);
    } catch (error) {
      logger.error({ err: error, codeId }, 'a policy can’t be evaluated; its code leads to its target_url');
      return { rules: [], destinations: [targetUrl], bytes: targetUrl.length };
    }
  }

  return (route, policy, visit, query) => {
    const hash = hashOfCode(route.codeId);
    return decide(compiledPolicy(hash, route, policy), new RequestVisitor(hash, route.targetVersion, visit, query));
  };
}

/**
 * A class, because an object with five closures for each scan takes longer to create than most policies to evaluate.
 */
class RequestVisitor implements Visitor {
  readonly at: number;
  readonly query: string;
  readonly #visit: Visit;
  readonly #codeHash: number;
  readonly #version: number;

  constructor(codeHash: number, version: number, visit: Visit, query: string) {
    this.at = visit.now;
    this.query = query;
    this.#visit = visit;
    this.#codeHash = codeHash;
    this.#version = version;
  }

  country(): string {
    return this.#visit.country;
  }

  language(): string | undefined {
    return preferredLanguage(this.#visit.headers['accept-language']);
  }

  device(): string {
    return agentOf(this.#visit.userAgent).device;
  }

  operatingSystem(): string {
    return agentOf(this.#visit.userAgent).operatingSystem.toLowerCase();
  }

  share(): number {
    return shareOfCode(this.#codeHash, this.#version, this.#visit.visitor);
  }
}

/** Parsing takes 2 µs. */
function preferredLanguage(header = ''): string | undefined {
  const known = languages.get(header);
  if (known !== undefined) return known === '' ? undefined : known;
  const [preferred] = acceptedLanguages(header);
  if (languages.size >= MAX_LANGUAGES) languages.clear();
  // Longer ones would take the memory of many.
  if (header.length <= 256) languages.set(header, preferred ?? '');
  return preferred;
}
