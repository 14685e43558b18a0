import { type CountryOf, countryCode } from '../../../common/contract/countries.ts';
import { visitorOf } from '../../../common/contract/visitor.ts';
import type { Origin } from '../../http/origin.ts';
import type { ScanHeaders } from './scan-request.ts';

/** Sources of a visitor's country and hash. */
export interface VisitSources {
  /** The header in which trusted proxies send the visitor's country. */
  readonly countryHeader: string | undefined;
  readonly countryOf: CountryOf;
  /** The salt of the visitor hash at a time in ms since 1970. */
  readonly saltAt: (now: number) => string;
}

/** What a request tells about its visitor, whose country and hash are determined once, when they are needed. */
export class Visit {
  readonly headers: ScanHeaders;
  readonly origin: Origin;
  /** In ms since 1970. */
  readonly now = Date.now();
  /** At most 1,024 bytes. */
  readonly userAgent: string;
  readonly #sources: VisitSources;
  #country: string | undefined;
  #visitor: string | undefined;

  constructor(sources: VisitSources, headers: ScanHeaders, origin: Origin) {
    this.#sources = sources;
    this.headers = headers;
    this.origin = origin;
    this.userAgent = truncated(headers['user-agent'], 1_024);
  }

  /** ISO 3166-1 alpha-2 in capitals, or `unknown`. */
  get country(): string {
    this.#country ??= this.#findCountry();
    return this.#country;
  }

  /** 16 hexadecimal digits. */
  get visitor(): string {
    this.#visitor ??= visitorOf(this.#sources.saltAt(this.now), this.origin.address, this.userAgent);
    return this.#visitor;
  }

  #findCountry(): string {
    const { countryHeader, countryOf } = this.#sources;
    const { address, proxied } = this.origin;
    const fromProxy = proxied && countryHeader !== undefined ? countryCode(this.headers[countryHeader]) : 'unknown';
    return fromProxy === 'unknown' ? countryOf(address) : fromProxy;
  }
}

/** Node decodes header values as Latin-1, so a character takes at most two bytes in UTF-8. */
export function truncated(value: string | string[] | undefined, maxBytes: number): string {
  if (value === undefined) return '';
  const joined = typeof value === 'string' ? value : value.join(', ');
  if (joined.length * 2 <= maxBytes) return joined;
  const cut = Buffer.from(joined).subarray(0, maxBytes).toString();
  return cut.endsWith('\ufffd') ? cut.slice(0, -1) : cut;
}
