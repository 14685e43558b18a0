import { setTimeout as sleep } from 'node:timers/promises';
import { createContextValues } from '@connectrpc/connect';
import type { Pool } from 'pg';
import { expect, test } from 'vitest';
import { AdmissionService } from '../../proto/gen/signpost/access/v1/admission_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { hashApiKey, newApiKey } from './api-key.ts';
import { peerKey } from './caller.ts';
import { callChecker } from './check-call.ts';
import type { RequestLog } from './request-log.ts';
import { serviceTokens } from './service-token.ts';

test('made-up keys from many addresses of one /64 wait for their turn as those of one client', async () => {
  const lookedUp: string[] = [];
  const pool = {
    async query({ values: [hash] }: { values: Buffer[] }) {
      lookedUp.push(hash?.toString('hex') ?? '');
      await sleep(5);
      return { rows: [] };
    },
  };
  const check = callChecker({
    pool: pool as unknown as Pool,
    tokens: serviceTokens(['token']),
    standardCallers: { health: 'everyone', reflection: 'nobody' },
    requestLog: {} as RequestLog,
  });
  const call = (address: string, key: string) =>
    check({
      method: AdmissionService.method.authenticate,
      checkedAs: CodesService.method.listCodes,
      header: new Headers({ authorization: `Bearer ${key}` }),
      values: createContextValues().set(peerKey, { address, certificateName: undefined }),
      signal: new AbortController().signal,
      rows: 0,
    });
  const key = newApiKey();
  const made = Array.from({ length: 100 }, (_, n) => call(`2001:db8::${n}`, newApiKey()));
  const outcomes = await Promise.allSettled([...made, call('192.0.2.1', key)]);
  expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['rejected']));
  expect(lookedUp).toHaveLength(101);
  expect(lookedUp.indexOf(hashApiKey(key).toString('hex'))).toBeLessThan(20);
});
