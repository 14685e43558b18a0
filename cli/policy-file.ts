import { policyFromJson } from '../common/targets/policy-json.ts';
import type { Policy } from '../proto/gen/signpost/targets/v1/policy_pb.ts';
import { UsageError } from './core.ts';
import { readOptionFile } from './read-option-file.ts';

/** Reads the file that `--policy` names. Its form is described in docs/targets.md. */
export async function readPolicyFile(path: string): Promise<Policy> {
  const read = policyFromJson(parse(await readOptionFile('--policy', path), path));
  if ('problem' in read) throw new UsageError(`--policy: ${read.problem}`);
  return read.policy;
}

function parse(content: string, path: string): unknown {
  try {
    return JSON.parse(content);
  } catch (error) {
    throw new UsageError(`--policy: ${path} is not valid JSON: ${(error as Error).message}.`, { cause: error });
  }
}
