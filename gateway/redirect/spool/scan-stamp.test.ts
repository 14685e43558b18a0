import { expect, test } from 'vitest';
import { readGatewayFigures } from '../../../common/contract/gateway-figures.ts';
import { writeScanId } from '../answer/scan-id.ts';
import { STAMP_BYTES, type Stamp, stampOf, stampScans } from './scan-stamp.ts';
import { countShipped } from './shipped-figures.ts';

const NOON = Date.UTC(2026, 10, 21, 12);
const TOMORROW = NOON + 86_400_000;

/** A scan with only its first and last field: its id, and its stamp. */
function scan(stamp: Stamp, now: number): Buffer {
  const bytes = Buffer.alloc(18 + STAMP_BYTES);
  bytes.set([0x0a, 16]);
  writeScanId(bytes, 2, now);
  stamp(bytes, 18, now);
  return bytes;
}

test('scans of a day are numbered from 1, with the number lost; a day begins a new run', () => {
  let lost = 7;
  const stamp = stampScans(() => lost);
  const first = stampOf(scan(stamp, NOON));
  lost += 2;
  const second = stampOf(scan(stamp, NOON));
  const next = stampOf(scan(stamp, TOMORROW));
  const back = stampOf(scan(stamp, NOON));
  expect(first).toEqual({ run: expect.stringMatching(/^[0-9a-f]{16}$/), answered: 1, lost: 0 });
  expect(second).toEqual({ run: first?.run, answered: 2, lost: 2 });
  expect(next).toMatchObject({ answered: 1, lost: 0 });
  expect(new Set([first, next, back].map((each) => each?.run)).size).toBe(3);
});

test('a message without a stamp is recognized', () => {
  expect(stampOf(new Uint8Array())).toBeUndefined();
  expect(stampOf(Buffer.alloc(40))).toBeUndefined();
});

test('a shipment contains the last number of each run, and the total shipped for each of its days', () => {
  const [one, two] = [stampScans(() => 0), stampScans(() => 3)];
  const ship = countShipped();
  const scans = [scan(one, NOON), scan(one, NOON), scan(two, NOON), scan(one, TOMORROW)];
  const runs = scans.map((each) => stampOf(each)?.run);
  const figures = readGatewayFigures(ship(scans).figures);
  expect(figures).toEqual([
    { gateway: runs[1], day: '2026-11-21', answered: 2, lost: 0, published: 0 },
    { gateway: runs[2], day: '2026-11-21', answered: 1, lost: 0, published: 0 },
    { gateway: runs[3], day: '2026-11-22', answered: 1, lost: 0, published: 0 },
    { gateway: expect.any(String), day: '2026-11-21', answered: 0, lost: 0, published: 3 },
    { gateway: figures[3]?.gateway, day: '2026-11-22', answered: 0, lost: 0, published: 1 },
  ]);
  ship(scans.slice(0, 1)).failed();
  expect(readGatewayFigures(ship([scan(one, NOON)]).figures)[1]).toMatchObject({ day: '2026-11-21', published: 4 });
});
