import { hash } from 'node:crypto';
import { GATEWAY_FIGURES, writeGatewayFigures } from '../../common/contract/gateway-figures.ts';
import type { Log } from '../../common/log/log.ts';
import { SCANS } from '../../common/log/topics.ts';
import { countByDay } from '../../src/scans/days.ts';
import type { SampleScan } from './scans.ts';

/** Records of one call, which takes about 20 ms of Postgres. */
const CALL_RECORDS = 1_000;

/**
 * Appends the scans to the log, from which the recorder counts them as it counts those of gateways. The last call
 * carries the figures of the ledger: all of them were answered and published. `account`: `acct_…`.
 */
export async function publishScans(
  log: Pick<Log, 'publish'>,
  account: string,
  scans: readonly SampleScan[],
): Promise<void> {
  // The same at every attempt, so that the ledger counts an interrupted one once.
  const gateway = hash('sha256', account).slice(0, 16);
  const figures = [...countByDay(scans.map(({ at }) => at))].map(([day, count]) => {
    return { gateway, day, answered: count, lost: 0, published: count };
  });
  const headers = { [GATEWAY_FIGURES]: writeGatewayFigures(figures) };
  for (let from = 0; from < scans.length; from += CALL_RECORDS) {
    const part = scans.slice(from, from + CALL_RECORDS);
    const isLast = from + CALL_RECORDS >= scans.length;
    await log.publish(
      SCANS.name,
      part.map(({ codeId, message }, index) => ({
        key: codeId,
        value: message,
        ...(isLast && index === 0 && { headers }),
      })),
    );
  }
}
