import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import {
  type Conditions,
  type Outcome,
  Page,
  type Policy,
  type Rule,
} from '../../proto/gen/signpost/targets/v1/policy_pb.ts';
import type { ConditionsJson, PolicyJson, RuleJson } from './policy-json.ts';

/** Writes a policy, without what is empty. */
export function policyToJson({ rules, passQuery, parameters }: Policy): PolicyJson {
  return {
    ...(rules.length > 0 ? { rules: rules.map(ruleToJson) } : {}),
    ...(passQuery ? { pass_query: true } : {}),
    ...(Object.keys(parameters).length > 0 ? { parameters: { ...parameters } } : {}),
  };
}

function ruleToJson({ name, when, outcome: kind }: Rule): RuleJson {
  return {
    ...(name === '' ? {} : { name }),
    ...(when ? { when: conditionsToJson(when) } : {}),
    then: outcomeToJson(kind),
  };
}

function conditionsToJson(when: Conditions): ConditionsJson {
  const { from, until, weekly: times, countries, languages, devices, operatingSystems } = when;
  return {
    ...(from ? { from: isoOf(from) } : {}),
    ...(until ? { until: isoOf(until) } : {}),
    ...(times ? { weekly: { time_zone: times.timeZone, days: times.days, from: times.from, until: times.until } } : {}),
    ...(countries.length > 0 ? { countries } : {}),
    ...(languages.length > 0 ? { languages } : {}),
    ...(devices.length > 0 ? { devices } : {}),
    ...(operatingSystems.length > 0 ? { operating_systems: operatingSystems } : {}),
  };
}

function outcomeToJson(message: Outcome | undefined): RuleJson['then'] {
  switch (message?.kind.case) {
    case 'targetUrl':
      return { target_url: message.kind.value };
    case 'split':
      return {
        split: message.kind.value.variants.map(({ label, weight, targetUrl }) => ({
          label,
          weight,
          target_url: targetUrl,
        })),
      };
    default:
      return { page: message?.kind.value === Page.PAUSED ? 'paused' : 'gone' };
  }
}

function isoOf(timestamp: Timestamp): string {
  return timestampDate(timestamp).toISOString();
}
