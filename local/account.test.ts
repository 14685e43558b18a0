import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Role } from '../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { startSignpost } from '../test/harness/processes.ts';
import { localAccount } from './account.ts';
import { accountsOf } from './core.ts';
import { requestSample, sampleRequestedAt } from './sample/request.ts';
import { OWNER } from './sign-in-link.ts';

test('the local account is known although its key was rotated or has used up a limit, and its owner has other accounts', async () => {
  const signpost = await startSignpost({ env: { ROLES: 'rpc' } });
  const dataDir = await mkdtemp(join(tmpdir(), 'signpost-account-'));
  onTestFinished(() => rm(dataDir, { recursive: true }));
  const settings = { dataDir, sample: false };
  const { id = '', apiKey } = await localAccount(settings, signpost);
  const { accountId: another } = await signpost.createAccount();
  for (const each of [id, another]) await accountsOf(signpost, each).addMember({ email: OWNER, role: Role.OWNER });
  await accountsOf(signpost, id).updateAccount({ overrides: { monthlyQuota: 1n } });
  const call = () => fetch(`${signpost.url}/api/v1/qr-codes`, { headers: { authorization: `Bearer ${apiKey}` } });
  expect([(await call()).status, (await call()).status]).toEqual([200, 429]);
  expect(await localAccount(settings, signpost)).toEqual({ id, apiKey });
  await accountsOf(signpost, id).rotateKey({});
  expect(await localAccount(settings, signpost)).toEqual({ id, apiKey: undefined });
  // As with another Postgres, before the sample data of the former one was complete.
  await requestSample(dataDir);
  await writeFile(join(dataDir, 'account'), 'acct_01m89y406yeyjahmp1c0d27s10');
  expect((await localAccount({ dataDir, sample: true }, signpost)).id).not.toBe(id);
  expect(await sampleRequestedAt(dataDir)).toBeUndefined();
});

test('stopping does not wait for a core that does not answer', async () => {
  const core = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void core.close());
  await once(core, 'listening');
  const dataDir = await mkdtemp(join(tmpdir(), 'signpost-account-'));
  onTestFinished(() => rm(dataDir, { recursive: true }));
  const { port: corePort } = core.address() as AddressInfo;
  const stop = new AbortController();
  const account = localAccount({ dataDir, sample: false }, { corePort, serviceToken: 'x', signal: stop.signal });
  core.once('connection', () => stop.abort());
  await expect(account).rejects.toThrow('[canceled]');
});
