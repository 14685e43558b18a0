import type { Logger } from 'pino';
import { agentOf } from '../../../common/contract/user-agent.ts';
import { compilePolicy, type Decision, type Evaluator, type Reader } from '../../../common/targets/evaluate.ts';
import { acceptedLanguages } from '../../../common/targets/language.ts';
import { variantShare } from '../../../common/targets/variant-share.ts';
import { type FoundRoute, readPolicy } from '../routes/route-record.ts';
import type { Visit } from './visit.ts';

/** What a scan of a code with a policy leads to, and the version of the target that says so. */
export interface DecidedTarget extends Decision {
  readonly version: number;
}

/**
 * The number of compiled policies that are kept. Compiling one with five rules takes 50 µs, evaluating it 1 µs; each takes
 * about 5 KB.
 */
const MAX_COMPILED = 4_000;
/** Nearly all readers send one of a few hundred headers. */
const MAX_LANGUAGES = 1_000;

interface Compiled {
  readonly bytes: Buffer;
  readonly targetUrl: string;
  readonly version: number;
  readonly evaluate: Evaluator;
}

const languages = new Map<string, string | undefined>();

/** Decides what scans of codes with a policy lead to; `policy`: the one in the route. */
export type DecideTarget = (route: FoundRoute, policy: Buffer, visit: Visit, query: string) => DecidedTarget;

export function targetDecider(logger: Logger): DecideTarget {
  /** By code id; cleared when full, which costs less than tracking the order of use. */
  const compiled = new Map<string, Compiled>();

  function compiledPolicy(route: FoundRoute, bytes: Buffer): Compiled {
    const { codeId, targetUrl } = route;
    const existing = compiled.get(codeId);
    if (existing && existing.targetUrl === targetUrl && existing.bytes.equals(bytes)) return existing;
    const added = { bytes, targetUrl, ...compile(route, bytes) };
    if (compiled.size >= MAX_COMPILED) compiled.clear();
    compiled.set(codeId, added);
    return added;
  }

  /** A time zone that is newer than this gateway must not stop redirects. */
  function compile({ codeId, targetUrl }: FoundRoute, bytes: Buffer): Pick<Compiled, 'version' | 'evaluate'> {
    try {
      const { version, policy } = readPolicy(bytes);
      return { version, evaluate: compilePolicy(policy, targetUrl) };
    } catch (error) {
      logger.error({ err: error, codeId }, 'a policy can’t be evaluated; its code leads to its target_url');
      return { version: 0, evaluate: () => ({ rule: 0, variant: '', target: targetUrl }) };
    }
  }

  return (route, policy, visit, query) => {
    const { version, evaluate } = compiledPolicy(route, policy);
    const { target, rule, variant } = evaluate(readerOf(route, version, visit, query));
    return { target, rule, variant, version };
  };
}

function readerOf({ codeId }: FoundRoute, version: number, visit: Visit, query: string): Reader {
  return {
    at: visit.now,
    query,
    country: () => visit.country,
    language: () => preferredLanguage(visit.headers['accept-language']),
    device: () => agentOf(visit.userAgent).device,
    operatingSystem: () => agentOf(visit.userAgent).operatingSystem.toLowerCase(),
    share: () => variantShare(codeId, version, visit.visitor),
  };
}

/** Parsing takes 2 µs. */
function preferredLanguage(header = ''): string | undefined {
  if (languages.has(header)) return languages.get(header);
  const [preferred] = acceptedLanguages(header);
  if (languages.size >= MAX_LANGUAGES) languages.clear();
  // Longer ones would take the memory of many.
  if (header.length <= 256) languages.set(header, preferred);
  return preferred;
}
