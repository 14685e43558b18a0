import type { Policy } from '../../proto/gen/signpost/targets/v1/policy_pb.ts';
import { policyFromJson } from './policy-json.ts';

/** Reads a policy that is known to be valid. */
export function policyOf(json: unknown): Policy {
  const read = policyFromJson(json);
  if ('problem' in read) throw new Error(read.problem);
  return read.policy;
}
