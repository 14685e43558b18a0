import { timestampNow } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError, createClient, createRouterTransport } from '@connectrpc/connect';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { AccountsService } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import type { Core } from './core.ts';
import { endedSessions } from './ended-sessions.ts';

const NOW_S = Math.floor(Date.now() / 1_000);

/** A core that takes ended sessions only if `takes()`, and lists those that it has taken. */
function coreThat(takes: () => boolean) {
  const keys: Uint8Array[] = [];
  const transport = createRouterTransport(({ service }) =>
    service(AccountsService, {
      endSessions(request) {
        if (!takes()) throw new ConnectError('full', Code.ResourceExhausted);
        keys.push(...request.keys);
        return {};
      },
      listEndedSessions() {
        const asOf = timestampNow();
        return { asOf, sessions: keys.map((key) => ({ key, endedAt: asOf })) };
      },
    }),
  );
  return { accounts: createClient(AccountsService, transport) } as unknown as Core;
}

/** One instance of the dashboard. */
function instance(core: Core, most?: number) {
  const logger = pino({ level: 'silent' });
  return endedSessions({ lifetimeS: 60, secretKey: Buffer.alloc(32), core, logger, ...(most && { most }) });
}

test('an instance whose ended sessions the core does not take still learns of those that ended elsewhere', async () => {
  let takes = true;
  const core = coreThat(() => takes);
  const elsewhere = { id: 'elsewhere', startedAt: NOW_S };
  await instance(core).end(elsewhere);
  takes = false;
  const here = instance(core);
  await here.end({ id: 'here', startedAt: NOW_S });
  expect(await here.has(elsewhere)).toBe(true);
});

test('a session that there is no room to report is not said to be known elsewhere', async () => {
  let takes = false;
  const here = instance(
    coreThat(() => takes),
    1,
  );
  expect(await here.endAt({ providerSession: 'first' })).toBe(false);
  takes = true;
  expect(await here.endAt({ providerSession: 'second' })).toBe(false);
  expect(await here.endAt({ providerSession: 'second' })).toBe(true);
});
