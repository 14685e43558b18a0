import { expect, test } from 'vitest';
import { createFormat } from './format.ts';

test('relative times count whole units that have passed, and name no calendar days', () => {
  const now = new Date('2026-11-20T05:00:00Z');
  const relative = (locale: string, hoursAgo: number) =>
    createFormat(locale).relative(new Date(now.getTime() - hoursAgo * 3_600_000), now);
  expect(relative('en', 30)).toBe('1 day ago');
  expect(relative('de', 30)).toBe('vor 1 Tag');
  expect(relative('de', 49)).toBe('vor 2 Tagen');
  expect(relative('en', 59.9 / 60)).toBe('59 minutes ago');
  expect(relative('en', 23.9)).toBe('23 hours ago');
  expect(relative('en', -23.9)).toBe('in 23 hours');
  expect(relative('en', 0)).toBe('now');
});
