import { expect, test } from 'vitest';
import { policyOf } from '../../common/targets/policy.fixture.ts';
import { AnalyticsService } from '../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import { TargetsService } from '../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { contract, TARGET } from './client.ts';
import { internal } from './internal.ts';

const EVENTUALLY = { interval: 100 };

const api = contract({ gateways: 2 });

const CHANGED = 'https://example.com/changed';

const LANGUAGES = {
  rules: [
    { when: { languages: ['fr'] }, then: { target_url: 'https://example.com/fr' } },
    { when: { languages: ['de'] }, then: { page: 'gone' } },
    {
      when: { languages: ['en'] },
      then: {
        split: [
          { label: 'größer, "a"', weight: 1, target_url: 'https://example.com/a' },
          { label: 'b', weight: 1, target_url: 'https://example.com/b' },
        ],
      },
    },
  ],
};

/** What decided each answer: rule and variant by `Location`, or by the status of a page. */
const DECIDED: Readonly<Record<string, string>> = {
  'https://example.com/fr': '1/',
  410: '2/',
  'https://example.com/a': '3/größer, "a"',
  'https://example.com/b': '3/b',
  [TARGET]: '0/',
  [CHANGED]: '0/',
};

test('analytics break scans down by version, rule and variant, exactly as two gateways answered them', async () => {
  const account = await api.account();
  const targets = internal(api.signpost, TargetsService, account.id);
  const analytics = internal(api.signpost, AnalyticsService, account.id);
  const code = await account.create();
  const answered = new Map<string, number>();

  async function answerOf(gateway: number, language: string, visitor: number): Promise<string> {
    const url = `${api.signpost.gateways[gateway]?.url}/r/${code.short_code}`;
    const headers = { 'accept-language': language, 'user-agent': `visitor ${visitor}` };
    const response = await fetch(url, { redirect: 'manual', headers });
    await response.arrayBuffer();
    return response.headers.get('location') ?? String(response.status);
  }

  /** HEAD is not counted. */
  async function appliedEverywhere(language: string, expected: string): Promise<void> {
    const heads = () =>
      Promise.all(
        api.signpost.gateways.map(async ({ url }) => {
          const options = { method: 'HEAD', redirect: 'manual', headers: { 'accept-language': language } } as const;
          const response = await fetch(`${url}/r/${code.short_code}`, options);
          return response.headers.get('location') ?? String(response.status);
        }),
      );
    await expect.poll(heads, EVENTUALLY).toEqual([expected, expected]);
  }

  async function scan(version: number, visitors: number): Promise<void> {
    for (let visitor = 0; visitor < visitors; visitor++) {
      for (const language of ['fr-CA', 'de', 'en', 'ja']) {
        const name = `${version}/${DECIDED[await answerOf(visitor % 2, language, visitor)]}`;
        answered.set(name, (answered.get(name) ?? 0) + 1);
      }
    }
  }

  // A target that has never been changed has no version.
  await answerOf(0, 'fr', 0);
  await targets.setTarget({ id: code.id, policy: policyOf(LANGUAGES) });
  await appliedEverywhere('de', '410');
  await scan(2, 30);
  await targets.setTarget({ id: code.id, policy: policyOf({ ...LANGUAGES, rules: LANGUAGES.rules.slice(0, 2) }) });
  await appliedEverywhere('en', TARGET);
  await scan(3, 11);
  // Removes the policy.
  await account.call('PATCH', `/qr-codes/${code.id}`, { json: { target_url: CHANGED } });
  await appliedEverywhere('de', CHANGED);
  await scan(4, 5);

  expect([...answered.keys()].sort()).toEqual(
    ['2/0/', '2/1/', '2/2/', '2/3/b', '2/3/größer, "a"', '3/0/', '3/1/', '3/2/', '4/0/'].sort(),
  );
  const counted = async () => {
    const { figures } = await analytics.getCodeAnalytics({ id: code.id });
    return new Map(
      figures?.targets.map(({ version, rule, variant, scans }) => [`${version}/${rule}/${variant}`, Number(scans)]),
    );
  };
  await expect.poll(counted, EVENTUALLY).toEqual(answered);
  const { figures } = await analytics.getCodeAnalytics({ id: code.id });
  expect(figures?.scans).toBe(1n + 4n * 46n);
  const shares = figures?.targets.map(({ scans }) => scans) ?? [];
  expect(shares).toEqual(shares.toSorted((one, other) => Number(other - one)));
  // The REST analytics stay as they were.
  const { body } = await account.call<{ data: { breakdowns: object } }>('GET', `/qr-codes/${code.id}/analytics`);
  expect(Object.keys(body.data.breakdowns)).toEqual([
    'days',
    'countries',
    'devices',
    'operating_systems',
    'browsers',
    'referrers',
  ]);
}, 120_000);
