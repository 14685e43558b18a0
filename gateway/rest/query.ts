import { Refusal } from './refusal.ts';

/** A query string as it was parsed: a parameter that was repeated has several values. */
export type Query = Readonly<Record<string, string | string[] | undefined>>;

const INT32_MAX = 2_147_483_647;
const INT32_MIN = -2_147_483_648;

/** Every value of a parameter. */
export function allOf(query: Query, name: string): string[] {
  const value = query[name];
  return value === undefined ? [] : [value].flat();
}

/** The parameter as a field to spread into a request, or nothing; the first value counts. */
export function text<Name extends string>(query: Query, name: Name): { [key in Name]?: string } {
  const [value] = allOf(query, name);
  return value === undefined ? {} : ({ [name]: value } as { [key in Name]: string });
}

/**
 * Like `text`, for integers. What is none counts as not sent, and one that the wire can't carry as the nearest that it
 * can: these parameters never fail a request. The core knows defaults and ranges. Source: docs/contract.md, "Bodies and envelopes".
 */
export function integer<Name extends string>(query: Query, name: Name): { [key in Name]?: number } {
  const [value] = allOf(query, name);
  if (value === undefined || !/^[+-]?\d+$/.test(value)) return {};
  const carried = Math.min(INT32_MAX, Math.max(INT32_MIN, Number(value)));
  return { [name]: carried } as { [key in Name]: number };
}

/** The parameter when it is one of `values`; undefined when it was not sent. Throws a Refusal for anything else. */
export function oneOf<Value extends string>(query: Query, name: string, values: readonly Value[]): Value | undefined {
  const [given] = allOf(query, name);
  const value = values.find((each) => each === given);
  if (given !== undefined && value === undefined) {
    throw new Refusal('INVALID_FIELD', `${name} must be one of ${values.join(', ')}.`);
  }
  return value;
}
