import { afterEach, expect, test, vi } from 'vitest';
import { limitAttempts } from './address-limits.ts';

afterEach(() => void vi.useRealTimers());

test('an address has a fixed number of attempts per minute, independent of other addresses', () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const limit = limitAttempts(3);
  for (let attempt = 0; attempt < 3; attempt++) {
    expect(limit.waitOf('198.51.100.1')).toBeUndefined();
    limit.count('198.51.100.1');
    vi.advanceTimersByTime(1_000);
  }
  expect(limit.waitOf('198.51.100.1')).toBe(57);
  expect(limit.waitOf('198.51.100.2')).toBeUndefined();
  vi.advanceTimersByTime(56_999);
  expect(limit.waitOf('198.51.100.1')).toBe(1);
  vi.advanceTimersByTime(1);
  expect(limit.waitOf('198.51.100.1')).toBeUndefined();
});

test('a subscriber with a whole /64 counts as one client, and the next one as another', () => {
  const limit = limitAttempts(100);
  for (let n = 0; n < 100; n++) limit.count(`2001:db8:0:1::${n.toString(16)}`);
  expect(limit.waitOf('2001:db8::1:ffff:0:0:1')).toBeGreaterThan(0);
  expect(limit.waitOf('2001:db8:0:2::1')).toBeUndefined();
});

test('a flood of addresses does not limit other clients', () => {
  const limit = limitAttempts(1);
  for (let n = 0; n < 50_000; n++) limit.count(`2001:db8:${(n >> 8).toString(16)}:${(n & 0xff).toString(16)}::1`);
  expect(limit.waitOf('198.51.100.1')).toBeUndefined();
  expect(limit.waitOf('2001:db8:0:0::1')).toBeUndefined();
  limit.count('198.51.100.1');
  expect(limit.waitOf('198.51.100.1')).toBeGreaterThan(0);
});
