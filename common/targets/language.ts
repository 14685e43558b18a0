/** Browsers send less than 200 characters; parsing 16 KB, the most that fits into a request, took 4 ms. */
const MAX_LENGTH = 256;

/** A language of `Accept-Language`, in lower case, with its quality. */
interface AcceptedLanguage {
  readonly tag: string;
  readonly quality: number;
}

/**
 * The languages of an `Accept-Language` header (RFC 9110, section 12.5.4), preferred ones first, without `*` and
 * without those that the visitor doesn't accept. Only the first 256 characters are read.
 */
export function acceptedLanguages(header: string | undefined): string[] {
  return truncateRanges(header ?? '')
    .split(',')
    .map(parseRange)
    .filter(({ tag, quality }) => quality > 0 && tag !== '' && tag !== '*')
    .sort((one, other) => other.quality - one.quality)
    .map(({ tag }) => tag);
}

/** Whether a language range matches a tag: basic filtering (RFC 4647, section 3.3.1). Both in lower case. */
export function matchesLanguage(range: string, tag: string): boolean {
  return range === '*' || tag === range || tag.startsWith(`${range}-`);
}

function parseRange(range: string): AcceptedLanguage {
  const [tag = '', ...parameters] = range.trim().toLowerCase().split(';');
  const quality = parameters.map((each) => /^\s*q=([\d.]+)\s*$/.exec(each)?.[1]).find(Boolean);
  return { tag: tag.trimEnd(), quality: quality === undefined ? 1 : Number(quality) };
}

/** Truncates after the last whole range: cut within one, `en;q=0.5` could become `en;q=0`. */
function truncateRanges(ranges: string): string {
  if (ranges.length <= MAX_LENGTH) return ranges;
  return ranges.slice(0, Math.max(0, ranges.lastIndexOf(',', MAX_LENGTH)));
}
