import { create } from '@bufbuild/protobuf';
import { Answer, type Route, RouteSchema } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import { mapTargets, storedPolicy } from '../targets/policy.ts';
import { encodeId } from './ids.ts';
import { storedLandingPage } from './landing-page.ts';
import type { CodeTypeName } from './names.ts';

/** The columns of `codes` that determine its route. Ids are UUIDs. */
export interface RoutedCode {
  readonly id: string;
  readonly account_id: string;
  readonly type: CodeTypeName;
  readonly short_code: string;
  readonly target_url: string | null;
  /** A `Policy` in protobuf's JSON form. */
  readonly policy: unknown;
  readonly target_version: number;
  readonly paused: boolean;
  /** The custom domain in the print; null means the platform's. */
  readonly hostname: string | null;
  /** A `LandingPage` in protobuf's JSON form. */
  readonly landing_page: unknown;
  readonly version: string;
  readonly deleted_at: Date | null;
}

/** The names of these columns: what queries select and what gateways may read. */
export const ROUTED_COLUMNS = [
  'id',
  'account_id',
  'type',
  'short_code',
  'target_url',
  'policy',
  'target_version',
  'paused',
  'hostname',
  'landing_page',
  'version',
  'deleted_at',
] as const satisfies readonly (keyof RoutedCode)[];

/** What a route is for: a code, by its short code, or a custom domain, by its hostname. */
type RouteKind = NonNullable<Route['entry']['case']>;

/** The key of a route in the topic. */
export function routeKey(kind: RouteKind, name: string): string {
  return `${kind}:${name}`;
}

/** The name in the key of a route of this kind; undefined for any other key. */
export function nameInRouteKey(kind: RouteKind, key: string): string | undefined {
  const prefix = routeKey(kind, '');
  return key.startsWith(prefix) ? key.slice(prefix.length) : undefined;
}

/** Converts a code to its route. */
export function routeOf(code: RoutedCode): Route {
  const answer = answerOf(code);
  const value = {
    shortCode: code.short_code,
    codeId: encodeId('qr', code.id),
    accountId: encodeId('acct', code.account_id),
    answer,
    // A target that is not shown is not published, because the topic keeps it for ever.
    targetUrl: answer === Answer.REDIRECT && code.target_url !== null ? location(code.target_url) : '',
    hostname: code.hostname ?? '',
    ...(answer === Answer.REDIRECT ? targetOf(code) : {}),
    ...(answer === Answer.LANDING_PAGE && code.landing_page
      ? { landingPage: storedLandingPage(code.landing_page) }
      : {}),
  };
  return create(RouteSchema, { version: BigInt(code.version), entry: { case: 'code', value } });
}

/** Nothing for the first version, so that codes that have never been changed, which are most, have short records. */
function targetOf({ policy, target_version }: RoutedCode) {
  if (target_version === 1 && !policy) return {};
  return { targetVersion: target_version, ...(policy ? { policy: mapTargets(storedPolicy(policy), location) } : {}) };
}

/** The answer to a scan. Source: docs/contract.md, "The scan". */
function answerOf({ type, paused, deleted_at }: RoutedCode): Answer {
  if (deleted_at !== null) return Answer.GONE;
  if (type === 'static') return Answer.STATIC;
  if (paused) return Answer.PAUSED;
  return type === 'dynamic' ? Answer.REDIRECT : Answer.LANDING_PAGE;
}

/** The target as a `Location` value: unchanged if it is ASCII, else in its ASCII form. */
export function location(targetUrl: string): string {
  return /^[\x21-\x7e]*$/.test(targetUrl) ? targetUrl : new URL(targetUrl).href;
}
