import { fromJson, type JsonValue } from '@bufbuild/protobuf';
import { type Policy, PolicySchema } from '../../proto/gen/signpost/targets/v1/policy_pb.ts';

/** Reads a policy as Postgres stores it, in protobuf's JSON form. Fields that a later release has added are ignored. */
export function storedPolicy(json: unknown): Policy {
  return fromJson(PolicySchema, json as JsonValue, { ignoreUnknownFields: true });
}

/** A policy with each URL replaced by what `change` returns for it and the path of its field. */
export function mapTargets(policy: Policy, change: (url: string, field: string) => string): Policy {
  const rules = policy.rules.map((rule, index) => {
    const kind = rule.outcome?.kind;
    const path = `policy.rules[${index}].outcome`;
    if (kind?.case === 'targetUrl') {
      return {
        ...rule,
        outcome: { ...rule.outcome, kind: { ...kind, value: change(kind.value, `${path}.target_url`) } },
      };
    }
    if (kind?.case !== 'split') return rule;
    const variants = kind.value.variants.map((variant, at) => ({
      ...variant,
      targetUrl: change(variant.targetUrl, `${path}.split.variants[${at}].target_url`),
    }));
    return { ...rule, outcome: { ...rule.outcome, kind: { ...kind, value: { ...kind.value, variants } } } };
  });
  return { ...policy, rules } as Policy;
}

/** The URLs of a policy, in the order of `mapTargets`. */
export function targetsOf(policy: Policy): string[] {
  const urls: string[] = [];
  mapTargets(policy, (url) => {
    urls.push(url);
    return url;
  });
  return urls;
}
