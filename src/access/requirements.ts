import { type DescMethod, getOption, hasOption } from '@bufbuild/protobuf';
import { Caller, Cost, type Requirements, requires } from '../../proto/gen/signpost/access/v1/requirements_pb.ts';

/** Services that are not ours, so that their methods can't carry the option. Nothing but health is open to anybody. */
const STANDARD_SERVICES: Readonly<Record<string, Caller>> = {
  'grpc.health.v1.Health': Caller.ANYONE,
  'grpc.reflection.v1.ServerReflection': Caller.SERVICE,
  'grpc.reflection.v1alpha.ServerReflection': Caller.SERVICE,
};

type Needs = Pick<Requirements, 'caller' | 'features' | 'cost' | 'remembered' | 'closedToo'>;

/** An option is decoded anew whenever it is read: twice in every call, that took a twentieth of a core's time. */
const read = new WeakMap<DescMethod, Needs>();

/** What a method needs of its caller. Throws when it does not say, so that no method is open by an oversight. */
export function requirementsOf(method: DescMethod): Needs {
  const known = read.get(method);
  if (known) return known;
  const needs = readRequirements(method);
  read.set(method, needs);
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
