import { timestampMs } from '@bufbuild/protobuf/wkt';
import { encodeId } from '../../common/contract/ids.ts';
import { location } from '../../common/contract/route.ts';
import { compilePolicy, type Decision, decide } from '../../common/targets/evaluate.ts';
import { mapTargets, storedPolicy } from '../../common/targets/policy.ts';
import { variantShare } from '../../common/targets/variant-share.ts';
import type { Policy } from '../../proto/gen/signpost/targets/v1/policy_pb.ts';
import type { PreviewTargetRequest, PreviewTargetResponse } from '../../proto/gen/signpost/targets/v1/targets_pb.ts';
import type { CodeRow } from '../codes/code-row.ts';
import type { StoredTarget } from '../codes/target-versions.ts';

/** What a scan of a code with this target would lead to, if it is not paused, for the visitor of the request. */
export function previewTarget(
  code: CodeRow,
  { target_url, policy }: StoredTarget,
  request: PreviewTargetRequest,
): Pick<PreviewTargetResponse, 'result' | 'rule' | 'ruleName' | 'variant'> {
  const message = policy ? storedPolicy(policy) : undefined;
  const { rule, variant, target } = decideFor(code, target_url ?? '', message, request);
  return {
    result: typeof target === 'string' ? { case: 'targetUrl', value: target } : { case: 'page', value: target },
    rule,
    ruleName: message?.rules[rule - 1]?.name ?? '',
    variant,
  };
}

function decideFor(
  code: CodeRow,
  targetUrl: string,
  policy: Policy | undefined,
  request: PreviewTargetRequest,
): Decision {
  const otherwise = location(targetUrl);
  if (!policy) return { rule: 0, variant: '', target: otherwise };
  const { at, country, language, device, operatingSystem, visitor, query } = request;
  return decide(compilePolicy(mapTargets(policy, location), otherwise), {
    at: at ? timestampMs(at) : Date.now(),
    country: () => country || 'unknown',
    language: () => language.toLowerCase() || undefined,
    device: () => device || 'other',
    operatingSystem: () => operatingSystem.toLowerCase() || 'unknown',
    share: () => variantShare(encodeId('qr', code.id), code.target_version, visitor),
    query,
  });
}
