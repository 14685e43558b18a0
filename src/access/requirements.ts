import { type DescMethod, getOption, hasOption } from '@bufbuild/protobuf';
import { Caller, Cost, type Requirements, requires } from '../../proto/gen/signpost/access/v1/requirements_pb.ts';

/** Callers of standard services, whose methods cannot carry the option. Only health is open to anyone. */
const STANDARD_SERVICES: Readonly<Record<string, Caller>> = {
  'grpc.health.v1.Health': Caller.ANYONE,
  'grpc.reflection.v1.ServerReflection': Caller.SERVICE,
  'grpc.reflection.v1alpha.ServerReflection': Caller.SERVICE,
};

type Needs = Pick<Requirements, 'caller' | 'features' | 'cost' | 'remembered' | 'closedToo'>;

/** Decoded options: decoding one on every read, twice per call, took a twentieth of a core's CPU time. */
const cache = new WeakMap<DescMethod, Needs>();

/** What a method requires of its caller. Throws when it states nothing, so that no method is open by mistake. */
export function requirementsOf(method: DescMethod): Needs {
  const cached = cache.get(method);
  if (cached) return cached;
  const needs = readRequirements(method);
  cache.set(method, needs);
  return needs;
}

function readRequirements(method: DescMethod): Needs {
  const standard = STANDARD_SERVICES[method.parent.typeName];
  if (standard !== undefined) {
    return { caller: standard, features: [], cost: Cost.UNSPECIFIED, remembered: false, closedToo: false };
  }
  if (!hasOption(method, requires)) throw new Error(`${method.parent.typeName}/${method.name} states no requirements`);
  return getOption(method, requires);
}
