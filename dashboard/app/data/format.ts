import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { useMemo } from 'react';
import { serverNow } from './clock.ts';
import { useLanguage } from './preferences.ts';

/** An instant as messages of the core and pages have it. */
export type Instant = Timestamp | Date;

/** Writes numbers and times as the reader's language and region do. */
export interface Format {
  /** 12,345 */
  number(value: number | bigint): string;
  /** 1.2M: for axes and tiles, beside the exact number. */
  compact(value: number | bigint): string;
  /** 12.3 %, of a share between 0 and 1. */
  percent(share: number): string;
  /** +12.3 %, of a change by a share; −1 is a loss of everything. */
  change(share: number): string;
  /** 22 Nov 2026 */
  date(instant: Instant): string;
  /** 22 Nov 2026, 14:05:09 GMT+1 */
  exact(instant: Instant): string;
  /** 14:05:09 */
  time(instant: Instant): string;
  /** 22 Nov: of a UTC day, `YYYY-MM-DD`. */
  day(day: string): string;
  /** 3 hours ago, in 5 minutes. */
  relative(instant: Instant, now?: Date): string;
  /** Germany, of `DE`; undefined if it is not a country. */
  country(code: string): string | undefined;
  /** German, of `de`; the tag itself if it is none that the browser knows. */
  language(tag: string): string;
  /** Mon, of `mon`. */
  weekday(day: string): string;
  /** a, b and c */
  list(values: readonly string[]): string;
}

/** As policies name them; 1 January 2024 was a Monday. */
const WEEKDAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];

const UNITS = [
  ['year', 31_557_600],
  ['month', 2_629_800],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const;

export function useFormat(): Format {
  const language = useLanguage();
  return useMemo(() => createFormat(localeOf(language)), [language]);
}

/** The browser's locale of this language, which says how a region writes dates, or the language itself. */
function localeOf(language: string): string {
  return navigator.languages.find((tag) => tag.toLowerCase().split('-')[0] === language) ?? language;
}

export function createFormat(locale: string): Format {
  const numbers = new Intl.NumberFormat(locale);
  const compact = new Intl.NumberFormat(locale, { notation: 'compact', maximumFractionDigits: 1 });
  const percent = new Intl.NumberFormat(locale, { style: 'percent', maximumFractionDigits: 1 });
  const changes = new Intl.NumberFormat(locale, {
    style: 'percent',
    maximumFractionDigits: 1,
    signDisplay: 'exceptZero',
  });
  const dates = new Intl.DateTimeFormat(locale, { dateStyle: 'medium' });
  const exact = new Intl.DateTimeFormat(locale, {
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    timeZoneName: 'short',
  });
  const times = new Intl.DateTimeFormat(locale, { timeStyle: 'medium' });
  const days = new Intl.DateTimeFormat(locale, { day: 'numeric', month: 'short', timeZone: 'UTC' });
  // Not "yesterday", which may be two calendar days ago. Of seconds, `auto` only turns 0 into "now".
  const relative = new Intl.RelativeTimeFormat(locale, { numeric: 'always' });
  const seconds = new Intl.RelativeTimeFormat(locale, { numeric: 'auto' });
  const countries = new Intl.DisplayNames(locale, { type: 'region', fallback: 'none' });
  const languages = new Intl.DisplayNames(locale, { type: 'language' });
  const weekdays = new Intl.DateTimeFormat(locale, { weekday: 'short', timeZone: 'UTC' });
  const lists = new Intl.ListFormat(locale);
  return {
    number: (value) => numbers.format(value),
    compact: (value) => compact.format(value),
    percent: (share) => percent.format(share),
    change: (share) => changes.format(share),
    date: (instant) => dates.format(dateOf(instant)),
    exact: (instant) => exact.format(dateOf(instant)),
    time: (instant) => times.format(dateOf(instant)),
    day: (day) => days.format(new Date(`${day.slice(0, 10)}T00:00:00Z`)),
    relative(instant, now = new Date(serverNow())) {
      const difference = (dateOf(instant).getTime() - now.getTime()) / 1_000;
      for (const [unit, length] of UNITS) {
        if (Math.abs(difference) >= length) return relative.format(Math.trunc(difference / length), unit);
      }
      return seconds.format(Math.trunc(difference), 'second');
    },
    country: (code) => (/^[A-Z]{2}$/.test(code) ? countries.of(code) : undefined),
    language: (tag) => (/^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$/.test(tag) ? displayName(languages, tag) : tag),
    weekday: (day) => weekdays.format(Date.UTC(2024, 0, 1 + WEEKDAYS.indexOf(day))),
    list: (values) => lists.format(values),
  };
}

/** A language's name; tags that are not well-formed are their own names. */
function displayName(names: Intl.DisplayNames, tag: string): string {
  try {
    return names.of(tag) ?? tag;
  } catch {
    return tag;
  }
}

export function dateOf(instant: Instant): Date {
  return instant instanceof Date ? instant : timestampDate(instant);
}
