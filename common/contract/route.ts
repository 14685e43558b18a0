import { create, fromJson, type JsonValue } from '@bufbuild/protobuf';
import { LandingPageSchema } from '../../proto/gen/signpost/pages/v1/landing_page_pb.ts';
import { Answer, type Route, RouteSchema } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import { encodeId } from './ids.ts';
import type { CodeTypeName } from './names.ts';

/** The columns of `codes` that decide where a scan leads. Ids are UUIDs. */
export interface RoutedCode {
  readonly id: string;
  readonly account_id: string;
  readonly type: CodeTypeName;
  readonly short_code: string;
  readonly target_url: string | null;
  readonly paused: boolean;
  /** The custom domain as printed; null means the platform's. */
  readonly hostname: string | null;
  /** A `LandingPage` in protobuf's JSON form. */
  readonly landing_page: unknown;
  readonly version: string;
  readonly deleted_at: Date | null;
}

/** The same as names, for those who select them and for what gateways are granted. */
export const ROUTED_COLUMNS = [
  'id',
  'account_id',
  'type',
  'short_code',
  'target_url',
  'paused',
  'hostname',
  'landing_page',
  'version',
  'deleted_at',
] as const satisfies readonly (keyof RoutedCode)[];

/** Where a scan of a code leads. */
export function routeOf(code: RoutedCode): Route {
  const answer = answerOf(code);
  const value = {
    shortCode: code.short_code,
    codeId: encodeId('qr', code.id),
    accountId: encodeId('acct', code.account_id),
    answer,
    // What nobody is shown is not published: the topic keeps it for ever.
    targetUrl: answer === Answer.REDIRECT && code.target_url !== null ? location(code.target_url) : '',
    hostname: code.hostname ?? '',
    ...(answer === Answer.LANDING_PAGE && code.landing_page
      ? { landingPage: fromJson(LandingPageSchema, code.landing_page as JsonValue) }
      : {}),
  };
  return create(RouteSchema, { version: BigInt(code.version), entry: { case: 'code', value } });
}

/** Source: docs/contract.md, "The scan". */
function answerOf({ type, paused, deleted_at }: RoutedCode): Answer {
  if (deleted_at !== null) return Answer.GONE;
  if (type === 'static') return Answer.STATIC;
  if (paused) return Answer.PAUSED;
  return type === 'dynamic' ? Answer.REDIRECT : Answer.LANDING_PAGE;
}

/** The target as it may stand in a `Location` header: as it was sent, or in its ASCII form when it is not ASCII. */
function location(targetUrl: string): string {
  return /^[\x21-\x7e]*$/.test(targetUrl) ? targetUrl : new URL(targetUrl).href;
}
