import type { Logger } from 'pino';
import { agentOf } from '../../../common/contract/user-agent.ts';
import { compilePolicy, type Decision, type Evaluator, type Reader } from '../../../common/targets/evaluate.ts';
import { acceptedLanguages } from '../../../common/targets/language.ts';
import { variantShare } from '../../../common/targets/variant-share.ts';
import { type FoundRoute, readPolicy, versionOfTarget } from '../routes/route-record.ts';
import type { Visit } from './visit.ts';

/**
 * The number of compiled policies that are kept. Compiling one with five rules takes 20 µs, evaluating it 3 µs; each takes
 * about 3 KB.
 */
const MAX_COMPILED = 4_000;
/** Nearly all readers send one of a few hundred headers. */
const MAX_LANGUAGES = 1_000;

interface Compiled {
  /** Of the record: versions of targets are assigned again after a restore of Postgres. */
  readonly version: number;
  readonly evaluate: Evaluator;
}

/** The preferred language by header; empty if none is known. */
const languages = new Map<string, string>();

/** Decides what scans of codes with a policy lead to; `policy`: the one in the route. */
export type DecideTarget = (route: FoundRoute, policy: Buffer, visit: Visit, query: string) => Decision;

export function targetDecider(logger: Logger): DecideTarget {
  /** By code id; cleared when full, which costs less than tracking the order of use. */
  const compiled = new Map<string, Compiled>();

  function compiledPolicy(route: FoundRoute, policy: Buffer): Evaluator {
    const { codeId, version } = route;
    const existing = compiled.get(codeId);
    if (existing?.version === version) return existing.evaluate;
    const evaluate = compile(route, policy);
    if (compiled.size >= MAX_COMPILED) compiled.clear();
    compiled.set(codeId, { version, evaluate });
    return evaluate;
  }

  /** A time zone that is newer than this gateway must not stop redirects. */
  function compile({ codeId, targetUrl }: FoundRoute, bytes: Buffer): Evaluator {
    try {
      return compilePolicy(readPolicy(bytes), targetUrl);
    } catch (error) {
      logger.error({ err: error, codeId }, 'a policy can’t be evaluated; its code leads to its target_url');
      return () => ({ rule: 0, variant: '', target: targetUrl });
    }
  }

  return (route, policy, visit, query) => {
    const reader = new VisitReader(route.codeId, versionOfTarget(policy), visit, query);
    return compiledPolicy(route, policy)(reader);
  };
}

/** A class, because an object with five closures for each scan takes longer to create than most policies to evaluate. */
class VisitReader implements Reader {
  readonly at: number;
  readonly query: string;
  readonly #visit: Visit;
  readonly #codeId: string;
  readonly #version: number;

  constructor(codeId: string, version: number, visit: Visit, query: string) {
    this.at = visit.now;
    this.query = query;
    this.#visit = visit;
    this.#codeId = codeId;
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
    return variantShare(this.#codeId, this.#version, this.#visit.visitor);
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
