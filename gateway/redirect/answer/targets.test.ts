import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { create } from '@bufbuild/protobuf';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { encodeId, newUuid } from '../../../common/contract/ids.ts';
import { policyOf } from '../../../common/targets/policy.fixture.ts';
import { hashOfCode } from '../../../common/targets/variant-share.ts';
import { Answer, type CodeRoute, CodeRouteSchema } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import { foundRoute } from '../routes/route-record.ts';
import { targetDecider } from './targets.ts';
import { Visit } from './visit.ts';

const sources = { countryHeader: undefined, countryOf: () => 'DE', saltAt: () => '' };
const visit = new Visit(sources, {}, { hostname: 'go.example', address: '192.0.2.1', proxied: false });

/** Two ids of codes with the same hash. */
function colliding(): [string, string] {
  const byHash = new Map<number, string>();
  for (;;) {
    const id = encodeId('qr', newUuid());
    const other = byHash.get(hashOfCode(id));
    if (other !== undefined) return [other, id];
    byHash.set(hashOfCode(id), id);
  }
}

function routeTo(codeId: string, targetUrl: string): CodeRoute {
  const policy = policyOf({ rules: [{ name: 'all', then: { target_url: targetUrl } }] });
  const accountId = encodeId('acct', newUuid());
  return create(CodeRouteSchema, { codeId, accountId, answer: Answer.REDIRECT, targetUrl, policy, targetVersion: 1 });
}

test('of two codes whose ids have the same hash, each leads to its own target', () => {
  const decide = targetDecider(pino({ level: 'silent' }));
  const routes = colliding().map((codeId, at) => foundRoute(1n, routeTo(codeId, `https://example.com/${at}`)));
  const targets = [...routes, ...routes].map((route) => {
    if (!route.policy) throw new Error('the route has no policy');
    return decide(route, route.policy, visit, '').target;
  });
  const [first, second] = ['https://example.com/0', 'https://example.com/1'];
  expect(targets).toEqual([first, second, first, second]);
});

test.each([
  ['long URLs', {}, `https://example.com/${'x'.repeat(900)}`],
  [
    'long parameters',
    { passQuery: true, parameters: { a: '你'.repeat(128), b: '你'.repeat(128) } },
    'https://example.com',
  ],
])('the compiled policies of hundreds of codes take a limited amount of memory: %s', (_, adding, targetUrl) => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const decide = targetDecider(pino({ level: 'silent' }));
  const split = (rule: number) =>
    Array.from({ length: 10 }, (_, at) => ({ label: `${at}`, weight: 1, target_url: `${targetUrl}/${rule}/${at}` }));
  const policy = policyOf({ rules: Array.from({ length: 20 }, (_, rule) => ({ then: { split: split(rule) } })) });
  const route = { ...routeTo(encodeId('qr', newUuid()), targetUrl), policy: { ...policy, ...adding } };
  const found = foundRoute(1n, route);
  if (!found.policy) throw new Error('the route has no policy');
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let code = 0; code < 400; code++) {
    decide({ ...found, codeId: encodeId('qr', newUuid()) }, found.policy, visit, '');
  }
  collect();
  expect((process.memoryUsage().heapUsed - before) / 2 ** 20).toBeLessThan(50);
});
