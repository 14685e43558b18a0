import { type DescMethod, getOption, hasOption } from '@bufbuild/protobuf';
import { methodName } from '../../common/contract/method-name.ts';
import {
  Caller,
  Cost,
  MemberRole,
  type Requirements,
  requires,
} from '../../proto/gen/signpost/access/v1/requirements_pb.ts';

/** Standard services, whose methods cannot carry the option. Who may call them is configured: `StandardCallers`. */
const STANDARD_SERVICES: Readonly<Record<string, keyof StandardCallers>> = {
  'grpc.health.v1.Health': 'health',
  'grpc.reflection.v1.ServerReflection': 'reflection',
  'grpc.reflection.v1alpha.ServerReflection': 'reflection',
};

/** Who may call a standard service without a token; internal callers always may. */
export const STANDARD_CALLERS = ['everyone', 'loopback', 'nobody'] as const;

/** Who may call health and reflection without a token. */
export interface StandardCallers {
  readonly health: (typeof STANDARD_CALLERS)[number];
  readonly reflection: (typeof STANDARD_CALLERS)[number];
}

/** The standard service of a method; undefined if it is one of Signpost's own. */
export function standardService(method: DescMethod): keyof StandardCallers | undefined {
  return STANDARD_SERVICES[method.parent.typeName];
}

type Needs = Pick<Requirements, 'caller' | 'features' | 'cost' | 'remembered' | 'closedToo' | 'role'>;

/** Decoded options: decoding one on every read, twice per call, took a twentieth of a core's CPU time. */
const cache = new WeakMap<DescMethod, Needs>();

/**
 * What a method requires of its caller. Throws when it states nothing, or acts for an account and states no role, so
 * that no method is open by mistake.
 */
export function requirementsOf(method: DescMethod): Needs {
  const cached = cache.get(method);
  if (cached) return cached;
  const needs = readRequirements(method);
  cache.set(method, needs);
  return needs;
}

function readRequirements(method: DescMethod): Needs {
  if (standardService(method) !== undefined) {
    return {
      caller: Caller.SERVICE,
      features: [],
      cost: Cost.UNSPECIFIED,
      remembered: false,
      closedToo: false,
      role: MemberRole.NONE,
    };
  }
  const name = methodName(method);
  if (!hasOption(method, requires)) throw new Error(`${name} states no requirements`);
  const needs = getOption(method, requires);
  const forAccount = needs.caller === Caller.ACCOUNT || needs.caller === Caller.SERVICE_FOR_ACCOUNT;
  if (forAccount && needs.role === MemberRole.UNSPECIFIED) throw new Error(`${name} states no role for members`);
  return needs;
}
