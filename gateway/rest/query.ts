import { Refusal } from './refusal.ts';

/** A parsed query string: a repeated parameter has several values. */
export type Query = Readonly<Record<string, string | string[] | undefined>>;

const INT32_MAX = 2_147_483_647;
const INT32_MIN = -2_147_483_648;

/** All values of a parameter. */
export function allOf(query: Query, name: string): string[] {
  const value = query[name];
  return value === undefined ? [] : [value].flat();
}

/** The first value of a parameter as a field to spread into a request; empty if it is absent. */
export function text<Name extends string>(query: Query, name: Name): { [key in Name]?: string } {
  const [value] = allOf(query, name);
  return value === undefined ? {} : ({ [name]: value } as { [key in Name]: string });
}

/**
 * Like `text`, for integers. Anything but an integer counts as absent, and values are clamped to int32: these
 * parameters never fail a request. The core applies defaults and ranges. Source: docs/contract.md, "Bodies and
 * envelopes".
 */
export function integer<Name extends string>(query: Query, name: Name): { [key in Name]?: number } {
  const [value] = allOf(query, name);
  if (value === undefined || !/^[+-]?\d+$/.test(value)) return {};
  const clamped = Math.min(INT32_MAX, Math.max(INT32_MIN, Number(value)));
  return { [name]: clamped } as { [key in Name]: number };
}

/** The first value of a parameter; undefined if it is absent. Throws a Refusal if any value is none of `values`. */
export function oneOf<Value extends string>(query: Query, name: string, values: readonly Value[]): Value | undefined {
  const [first] = allOf(query, name).map((given) => {
    const value = values.find((each) => each === given);
    if (value === undefined) throw new Refusal('INVALID_FIELD', `${name}: must be one of ${values.join(', ')}.`);
    return value;
  });
  return first;
}
