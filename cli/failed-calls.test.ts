import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Code, ConnectError, type ConnectRouter } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { expect, onTestFinished, test } from 'vitest';
import { failure } from '../common/contract/errors.ts';
import { DELIVERY_STATUS_BY_NAME } from '../common/contract/names.ts';
import { AccountsService } from '../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { EventsService } from '../proto/gen/signpost/events/v1/events_pb.ts';
import { ScansService } from '../proto/gen/signpost/scans/v1/scans_pb.ts';
import { TargetChangeStatus, TargetsService } from '../proto/gen/signpost/targets/v1/targets_pb.ts';
import { WebhooksService } from '../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { commandLine } from './cli.fixture.ts';

/** Runs a command against a server in place of a core. */
async function runWith(listener: RequestListener, ...args: string[]) {
  const core = createServer(listener);
  await once(core.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void core.close());
  const { port } = core.address() as AddressInfo;
  const { run } = commandLine(() => ({ corePort: port, serviceToken: 'x' }));
  return run([...args]);
}

const serving = (routes: (router: ConnectRouter) => ConnectRouter) =>
  connectNodeAdapter({ routes: (router) => void routes(router) });

const UNKNOWN_OUTCOME = ': the change may have been made; check before you repeat it.';

test.each([
  [60_000, ['account', 'list'], '; try again.'],
  [60_000, ['key', 'revoke', '--account', 'acct_1', '--yes'], UNKNOWN_OUTCOME],
  [600_000, ['account', 'close', '--account', 'acct_1', '--yes'], UNKNOWN_OUTCOME],
  [600_000, ['events', 'audit'], '; try again.'],
  [600_000, ['scans', 'audit'], '; try again.'],
  [600_000, ['scans', 'delete', '--account', 'acct_1', '--yes'], UNKNOWN_OUTCOME],
])('the core has %i ms to answer %j', async (deadline, args, outcome) => {
  let given: string | null = null;
  const expire = (_: unknown, { requestHeader }: { requestHeader: Headers }) => {
    given = requestHeader.get('connect-timeout-ms');
    throw new ConnectError('the operation timed out', Code.DeadlineExceeded);
  };
  const core = serving((router) =>
    router
      .service(AccountsService, {
        getAccount: () => ({}),
        listAccounts: expire,
        revokeKey: expire,
        closeAccount: expire,
      })
      .service(EventsService, { auditEvents: expire })
      .service(ScansService, { auditScans: expire, deleteAccountScans: expire }),
  );
  expect(await runWith(core, ...args)).toEqual({
    code: 1,
    stdout: '',
    stderr: `The core did not answer within ${deadline / 1_000} s${outcome}\n`,
  });
  expect(given).toBe(String(deadline));
});

test('`events republish` takes as long as it needs', async () => {
  let given: string | null | undefined;
  const republishEvents = (_: unknown, { requestHeader }: { requestHeader: Headers }) => {
    given = requestHeader.get('connect-timeout-ms');
    return {};
  };
  const core = serving((router) => router.service(EventsService, { republishEvents }));
  expect(await runWith(core, 'events', 'republish')).toMatchObject({ code: 0, stderr: '' });
  expect(given).toBe(null);
});

test('the core’s own error about a message that arrives too slowly is printed as it is', async () => {
  const expire = () => {
    throw failure('DEADLINE_EXCEEDED', 'The message did not arrive in time.');
  };
  const core = serving((router) => router.service(AccountsService, { revokeKey: expire }));
  expect(await runWith(core, 'key', 'revoke', '--account', 'acct_1', '--yes')).toEqual({
    code: 1,
    stdout: '',
    stderr: 'The message did not arrive in time.\n',
  });
});

test.each<[string, RequestListener]>([
  ['before an answer', (request) => request.socket.destroy()],
  [
    'during an answer',
    (request, response) => {
      request.resume();
      response.writeHead(200, { 'content-type': 'application/proto', 'content-length': '100' });
      response.write('x', () => request.socket.destroy());
    },
  ],
])('a call whose connection is closed %s may have made the change, unless it is a read', async (_, listener) => {
  for (const [args, outcome] of [
    [['account', 'list'], '; try again.'],
    [['account', 'create', '--name', 'A', '--plan', 'scale'], UNKNOWN_OUTCOME],
  ] as const) {
    expect(await runWith(listener, ...args)).toEqual({
      code: 1,
      stdout: '',
      stderr: `The connection was closed before a response arrived${outcome} If every command fails like this, check CORE_HOST, CORE_PORT and CORE_CA.\n`,
    });
  }
});

test('webhook test waits while the core is unavailable, and names the delivery if asking for it fails', async () => {
  const at = { seconds: 1_790_000_000n };
  const delivery = { id: 'dlv_1', endpointId: 'hook_1', createdAt: at, status: DELIVERY_STATUS_BY_NAME.succeeded };
  const answered = { delivery: { ...delivery, attempts: [{ at, status: 200 }] }, attempts: [{ at, status: 200 }] };
  let asked = 0;
  const core = (last: () => typeof answered) =>
    serving((router) =>
      router.service(WebhooksService, {
        sendTestEvent: () => ({ delivery }),
        listAttempts: () => {
          asked += 1;
          if (asked < 3) throw failure('UNAVAILABLE', 'The service is temporarily unavailable. Please retry.');
          return last();
        },
      }),
    );
  const args = ['webhook', 'test', '--account', 'acct_1', '--id', 'hook_1'];
  expect(
    await runWith(
      core(() => answered),
      ...args,
    ),
  ).toMatchObject({ code: 0, stderr: '' });
  expect(asked).toBe(3);
  const gone = () => {
    throw failure('INVALID_FIELD', 'delivery_id: is unknown.');
  };
  expect(await runWith(core(gone), ...args)).toEqual({
    code: 1,
    stdout: '',
    stderr: 'delivery_id: is unknown. The delivery dlv_1 was queued; webhook deliveries --id hook_1 shows it.\n',
  });
});

test('a completed change of targets whose rows can’t be read is said to be completed', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'signpost-cli-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'rows.csv');
  await writeFile(file, 'id,target_url\nqr_1,x\n');
  const core = serving((router) =>
    router.service(TargetsService, {
      changeTargets: () => ({ change: { id: 'change_1' } }),
      async *watchTargetChange() {
        yield { change: { id: 'change_1', status: TargetChangeStatus.COMPLETED } };
      },
      getTargetChange: () => {
        throw failure('NOT_FOUND', 'There is no such change.');
      },
    }),
  );
  expect(await runWith(core, 'target', 'change', '--account', 'acct_1', '--file', file)).toEqual({
    code: 1,
    stdout: '',
    stderr:
      'There is no such change. The change is completed: target changes --id change_1 --status failed shows the rows that failed.\n',
  });
});

test('an error about a rule that a policy already had names the rule, and no option for the new one', async () => {
  const rules = ['a', 'b'].map((path) => ({
    when: { languages: ['de'] },
    outcome: { kind: { case: 'targetUrl' as const, value: `https://example.com/${path}` } },
  }));
  let rejected = 0;
  const core = serving((router) =>
    router.service(TargetsService, {
      getTarget: () => ({ target: { version: 1, policy: { rules } } }),
      setTarget: () => {
        throw failure('INVALID_FIELD', `policy.rules[${rejected}].outcome.target_url: must not be a scan URL.`);
      },
    }),
  );
  const sentenceFor = async (index: number, ...args: string[]) => {
    rejected = index;
    return (await runWith(core, 'target', ...args, '--account', 'acct_1', '--id', 'qr_1')).stderr;
  };
  const schedule = ['schedule', '--target-url', 'https://example.com/c', '--from', '2027-01-04'];
  expect(await sentenceFor(0, ...schedule)).toBe('--target-url: must not be a scan URL.\n');
  // The new rule comes before it.
  expect(await sentenceFor(1, ...schedule)).toBe('policy.rules[0].then.target_url: must not be a scan URL.\n');
  const split = ['split', '--variant', 'a=1=https://example.com/a', 'b=1=https://example.com/b'];
  expect(await sentenceFor(1, ...split)).toBe('policy.rules[1].then.target_url: must not be a scan URL.\n');
});
