import { randomBytes } from 'node:crypto';
import { type GatewayFigures, writeGatewayFigures } from '../../../common/contract/gateway-figures.ts';
import { DAY_MS } from '../../../common/runtime/durations.ts';
import { answeredAt } from './scan-layout.ts';
import { stampOf } from './scan-stamp.ts';

/** Scans that are being published. */
export interface Shipment {
  /** The header for the ledger: the totals of the days of these scans, these included. */
  readonly figures: string;
  /** Reverts the counts, if publishing failed. */
  failed(): void;
}

/** Counts the scans that this process publishes, and collects the stamps of the workers that answered them. */
export function countShipped(): (scans: readonly Uint8Array[]) => Shipment {
  const gateway = randomBytes(8).toString('hex');
  /** Scans published by day since 1970. */
  const published = new Map<number, number>();
  const add = (day: number, count: number) => published.set(day, (published.get(day) ?? 0) + count);

  return (scans) => {
    const runs = new Map<string, GatewayFigures>();
    const counts = new Map<number, number>();
    for (const scan of scans) {
      const day = Math.floor(answeredAt(scan) / DAY_MS);
      counts.set(day, (counts.get(day) ?? 0) + 1);
      const stamp = stampOf(scan);
      if (!stamp) continue;
      const { run, answered, lost } = stamp;
      if (answered > (runs.get(run)?.answered ?? 0)) {
        runs.set(run, { gateway: run, day: dayText(day), answered, lost, published: 0 });
      }
    }
    for (const [day, count] of counts) add(day, count);
    const own = [...counts.keys()].map((day) => {
      return { gateway, day: dayText(day), answered: 0, lost: 0, published: published.get(day) ?? 0 };
    });
    return {
      figures: writeGatewayFigures([...runs.values(), ...own]),
      failed() {
        for (const [day, count] of counts) add(day, -count);
      },
    };
  };
}

function dayText(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}
