import { toBinary } from '@bufbuild/protobuf';
import Bowser from 'bowser';
import { COUNTRIES } from '../../common/contract/country-codes.ts';
import { failure } from '../../common/contract/errors.ts';
import { contentProblem } from '../../common/contract/limits.ts';
import { location } from '../../common/contract/route.ts';
import type { Queryable } from '../../common/postgres/sql.ts';
import { mapTargets, targetsOf } from '../../common/targets/policy.ts';
import { policyToJson } from '../../common/targets/policy-to-json.ts';
import { weeklyTimes } from '../../common/targets/weekly.ts';
import {
  type Conditions,
  type Policy,
  PolicySchema,
  type Split,
  type Weekly,
} from '../../proto/gen/signpost/targets/v1/policy_pb.ts';
import { problemOfInstant } from '../calls/instants.ts';
import type { IsPlatformHost } from '../codes/fields/platform-hosts.ts';
import { readTargets } from '../codes/fields/target-url.ts';
import { nulProblem } from '../db/storable.ts';

/** What analytics distinguish, in lower case. */
const OPERATING_SYSTEMS: ReadonlySet<string> = new Set([
  ...Object.values(Bowser.OS_MAP).map((name) => name.toLowerCase()),
  'unknown',
]);

/** A policy whose values are valid, or a sentence that names the field and says what is wrong. */
export type ReadPolicy = { readonly policy: Policy | undefined } | { readonly problem: string };

/**
 * Validates policies beyond the constraints of their message: time zones, countries, operating systems, labels, URLs,
 * which are trimmed, and the size of the whole. An empty policy is undefined. Returns one result per input, in order.
 */
export async function readPolicies(
  on: Queryable,
  isPlatformHost: IsPlatformHost,
  accountId: string,
  policies: readonly Policy[],
): Promise<ReadPolicy[]> {
  const targets = await readTargets(on, isPlatformHost, accountId, policies.flatMap(targetsOf));
  let at = 0;
  return policies.map((policy) => {
    let urlProblem: string | undefined;
    const trimmed = mapTargets(policy, (url, field) => {
      const target = targets[at++];
      if (target && 'url' in target) return target.url;
      urlProblem ??= target?.problem.replace('target_url', field);
      return url;
    });
    const problem = problemOf(policy) ?? urlProblem ?? contentProblem('policy', publishedBytes(trimmed));
    if (problem !== undefined) return { problem };
    return { policy: isEmpty(trimmed) ? undefined : trimmed };
  });
}

/** Validates one policy. Fails with INVALID_FIELD. */
export async function policyOrFailure(
  on: Queryable,
  isPlatformHost: IsPlatformHost,
  accountId: string,
  policy: Policy,
): Promise<Policy | undefined> {
  const [read] = await readPolicies(on, isPlatformHost, accountId, [policy]);
  if (!read) throw new Error('one policy gives one result');
  if ('problem' in read) throw failure('INVALID_FIELD', read.problem);
  return read.policy;
}

/** Whether it changes nothing: without rules, and with nothing to add to the target. */
function isEmpty({ rules, passQuery, parameters }: Policy): boolean {
  return rules.length === 0 && !passQuery && Object.keys(parameters).length === 0;
}

/** The size of a valid policy in an event or, if that is larger, in a route, where its URLs are percent-encoded. */
function publishedBytes(policy: Policy): number {
  const inEvent = Buffer.byteLength(JSON.stringify(policyToJson(policy)));
  return Math.max(inEvent, toBinary(PolicySchema, mapTargets(policy, location)).length);
}

/** The constraints of the message exclude NUL in all other texts. */
function problemOf({ rules, parameters }: Policy): string | undefined {
  const inParameters = nulProblem({ 'policy.parameters': Object.entries(parameters).flat().join('') });
  if (inParameters !== undefined) return inParameters;
  for (const [index, { name, when, outcome }] of rules.entries()) {
    const path = `policy.rules[${index}]`;
    const problem =
      nulProblem({ [`${path}.name`]: name }) ??
      (when && problemOfConditions(`${path}.when`, when)) ??
      (outcome?.kind.case === 'split' ? problemOfSplit(`${path}.outcome.split`, outcome.kind.value) : undefined);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** Source: the IANA time zone database, "Timezone identifiers". */
const TIME_ZONE_NAME = /^[A-Za-z][A-Za-z0-9_+/-]*$/;

function problemOfConditions(path: string, when: Conditions): string | undefined {
  const { from, until, weekly, countries, operatingSystems } = when;
  const problem = problemOfInstant(`${path}.from`, from) ?? problemOfInstant(`${path}.until`, until);
  if (problem !== undefined) return problem;
  if (
    from &&
    until &&
    (from.seconds > until.seconds || (from.seconds === until.seconds && from.nanos >= until.nanos))
  ) {
    return `${path}.until: must be later than from.`;
  }
  const country = countries.find((code) => code !== 'unknown' && !COUNTRIES.has(code));
  if (country !== undefined) return `${path}.countries: ${country} is not an assigned code of ISO 3166-1.`;
  const system = operatingSystems.find((name) => !OPERATING_SYSTEMS.has(name));
  if (system !== undefined) {
    return `${path}.operating_systems: ${system} is none of ${[...OPERATING_SYSTEMS].join(', ')}.`;
  }
  return weekly && problemOfWeekly(`${path}.weekly`, weekly);
}

function problemOfWeekly(path: string, weekly: Weekly): string | undefined {
  try {
    // Temporal takes offsets and timestamps as time zones too, which have no daylight saving time.
    if (!TIME_ZONE_NAME.test(weekly.timeZone)) throw new RangeError('not a name');
    weeklyTimes(weekly);
    return undefined;
  } catch {
    return `${path}.time_zone: ${weekly.timeZone} is not in the IANA time zone database.`;
  }
}

function problemOfSplit(path: string, { variants }: Split): string | undefined {
  const labels = variants.map(({ label }) => label);
  const problem = nulProblem({ [`${path}.variants`]: labels.join('') });
  if (problem !== undefined) return problem;
  const repeated = labels.find((label, index) => labels.indexOf(label) !== index);
  return repeated === undefined ? undefined : `${path}.variants: the label ${repeated} is used twice.`;
}
