/**
 * The length up to which a target is extended by the scan's query, in characters: servers accept request lines of 8 KB.
 * A longer query is not read.
 */
const MAX_LENGTH = 8_192;

/** What a `Location` header may not contain, and `#`, which would begin a fragment. */
const FORBIDDEN = /[^\x21-\x22\x24-\x7e]+/g;

/** A query parameter: its name, and the parameter as it stands in URLs. */
type EncodedParameter = readonly [name: string, encoded: string];

/** Encodes parameters once for all targets that they are added to: it takes longer than all the rest. */
export function encodeParameters(parameters: Readonly<Record<string, string>>): readonly EncodedParameter[] {
  return Object.entries(parameters).map(([name, value]) => [name, new URLSearchParams([[name, value]]).toString()]);
}

/** Adds the query of a scan URL, without its `?`, to a target. */
export type AddQuery = (query: string) => string;

/**
 * Prepares a target: adds `parameters` to its query, and returns a function that adds those of a scan. Of parameters of
 * one name, those of the target win, then `parameters`. Nothing else of the target is changed.
 */
export function queryAdder(targetUrl: string, parameters: readonly EncodedParameter[]): AddQuery {
  const hash = targetUrl.indexOf('#');
  const fragment = hash === -1 ? '' : targetUrl.slice(hash);
  const address = hash === -1 ? targetUrl : targetUrl.slice(0, hash);
  const mark = address.indexOf('?');
  const names = new Set(mark === -1 ? [] : new URLSearchParams(address.slice(mark)).keys());
  const added = parameters.filter(([name]) => !names.has(name));
  for (const [name] of added) names.add(name);
  const prepared = appended(address, added.map(([, encoded]) => encoded).join('&'));
  const whole = prepared + fragment;
  return (query) => {
    if (query === '' || query.length > MAX_LENGTH) return whole;
    const allowed = query.replace(FORBIDDEN, encodeURIComponent);
    const decoded = namesOf(allowed);
    const pieces = allowed.split('&').filter((piece) => piece !== '');
    const passed = pieces.filter((_, index) => !names.has(decoded[index] as string));
    const extended = appended(prepared, passed.join('&')) + fragment;
    return extended.length <= MAX_LENGTH ? extended : whole;
  };
}

function appended(address: string, query: string): string {
  if (query === '') return address;
  const mark = address.indexOf('?');
  if (mark === -1) return `${address}?${query}`;
  return mark === address.length - 1 || address.endsWith('&') ? address + query : `${address}&${query}`;
}

/**
 * The decoded names of all parameters but empty ones, in their order. One URLSearchParams for each would take several
 * times as long. It removes a `?` at the beginning.
 */
function namesOf(query: string): readonly string[] {
  return [...new URLSearchParams(`?${query}`).keys()];
}
