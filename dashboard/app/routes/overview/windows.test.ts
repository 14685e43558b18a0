import { create } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { expect, test } from 'vitest';
import { IntervalSchema } from '../../../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import { compareToday, lastDays } from './windows.ts';

const now = Date.UTC(2026, 2, 10, 15, 30);

test('a period is of whole days, the rest of today included', () => {
  const { from, to } = lastDays(2, now);
  expect([from, to].map((time) => new Date(timestampMs(time)).toISOString())).toEqual([
    '2026-03-09T00:00:00.000Z',
    '2026-03-10T23:59:59.999Z',
  ]);
});

test('today’s full hours are compared with the same ones of yesterday', () => {
  // Two scans an hour yesterday, and three an hour today until now.
  const intervals = Array.from({ length: 48 }, (_, hour) =>
    create(IntervalSchema, { scans: hour < 24 ? 2n : hour <= 24 + 15 ? 3n : 0n }),
  );
  expect(compareToday(intervals, now)).toEqual({ scans: 48, hours: 15, before: { today: 45, yesterday: 30 } });
});
