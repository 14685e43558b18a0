import { toJson } from '@bufbuild/protobuf';
import { timestampFromDate, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError } from '@connectrpc/connect';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { decodeId, newUuid } from '../../common/contract/ids.ts';
import { policyOf } from '../../common/targets/policy.fixture.ts';
import { policyToJson } from '../../common/targets/policy-to-json.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { Page, PolicySchema } from '../../proto/gen/signpost/targets/v1/policy_pb.ts';
import { type Target, TargetsService } from '../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { newShortCode } from '../../src/codes/create/short-code.ts';
import { type Account, contract, type One, TARGET } from './client.ts';
import { internal } from './internal.ts';

const EVENTUALLY = { interval: 50 };

const api = contract({ gateways: 2 });
let database: pg.Client;
let account: Account;
beforeAll(async () => {
  database = new pg.Client({ connectionString: api.signpost.databaseUrl });
  await database.connect();
  account = await api.account();
});
afterAll(() => database.end());

const targets = (of: Account = account) => internal(api.signpost, TargetsService, of.id);

function present<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('the response lacks its field');
  return value;
}

const GONE = policyOf({ rules: [{ name: 'end', then: { page: 'gone' } }] });
const LUNCH = {
  rules: [
    {
      name: 'lunch',
      when: { weekly: { time_zone: 'Europe/Berlin', days: ['mon'], from: '11:00', until: '14:30' } },
      then: { target_url: 'https://example.com/lunch' },
    },
  ],
};

/** A policy of this many URLs, each with 2,000 characters in its path. */
const large = (urls: number, character: string) =>
  policyOf({
    rules: Array.from({ length: urls / 10 }, (_, rule) => ({
      then: {
        split: Array.from({ length: 10 }, (_, variant) => ({
          label: `${variant}`,
          weight: 1,
          target_url: `https://example.com/${rule}-${variant}-${character.repeat(2_000)}`,
        })),
      },
    })),
  });

/** Author and note are compared apart. */
function summary({ version, targetUrl, policy: of }: Target) {
  return { version, targetUrl, policy: of && policyToJson(of) };
}

async function failureOf(call: Promise<unknown>): Promise<{ code: Code; reason: string | undefined; message: string }> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ConnectError)) throw new Error('the call did not fail');
  return { code: error.code, ...readFailure(error) };
}

/** What a scan at each gateway leads to. */
async function scanned(code: { short_code: string }): Promise<(string | number)[]> {
  return Promise.all(
    api.signpost.gateways.map(async ({ url }) => {
      const response = await fetch(`${url}/r/${code.short_code}`, { redirect: 'manual' });
      return response.headers.get('location') ?? response.status;
    }),
  );
}

describe('a code that was never changed', () => {
  test('is version 1 of its target, without a row of its own', async () => {
    const code = await account.create();
    const { target } = await targets().getTarget({ id: code.id });
    expect(target).toMatchObject({ version: 1, targetUrl: TARGET, author: '', note: '' });
    expect(timestampMs(present(present(target).createdAt))).toBe(Date.parse(code.created_at));
    const { versions } = await targets().listTargetVersions({ id: code.id });
    expect(versions).toEqual([target]);
    expect((await targets().getTargetAt({ id: code.id, at: timestampFromMs(Date.now() + 1_000) })).target).toEqual(
      target,
    );
    const { rows } = await database.query(
      'select from target_versions where account_id = (select id from accounts limit 1)',
    );
    expect(rows).toHaveLength(0);
  });
});

describe('SetTarget', () => {
  test('a policy takes effect at all gateways, and the code stays as it is over REST', async () => {
    const code = await account.create();
    const { target } = await targets().setTarget({ id: code.id, policy: GONE, note: 'The season is over.' });
    expect(target).toMatchObject({ version: 2, targetUrl: TARGET, note: 'The season is over.' });
    expect(present(target).author).not.toBe('');
    await expect.poll(() => scanned(code), EVENTUALLY).toEqual([410, 410]);
    const shown = (await account.call<One>('GET', `/qr-codes/${code.id}`)).body.data;
    expect(shown).toEqual({ ...code, scan_count: expect.any(Number), version: 2, updated_at: expect.any(String) });
    const { code: message } = await internal(api.signpost, CodesService, account.id).getCode({ id: code.id });
    expect(policyToJson(present(present(message).policy))).toEqual(policyToJson(GONE));
    // An empty policy removes it.
    expect((await targets().setTarget({ id: code.id, policy: {} })).target).toMatchObject({ version: 3 });
    await expect.poll(() => scanned(code), EVENTUALLY).toEqual([TARGET, TARGET]);
  });

  test('a schedule, with query and parameters, leads where its preview says', async () => {
    const code = await account.create();
    const json = { ...LUNCH, pass_query: true, parameters: { utm_source: 'print' } };
    await targets().setTarget({ id: code.id, policy: policyOf(json) });
    const preview = (at: string) =>
      targets().previewTarget({ id: code.id, at: timestampFromDate(new Date(at)), query: 'table=9&a=b' });
    expect(await preview('2027-01-04T10:00:00Z')).toMatchObject({
      result: { case: 'targetUrl', value: 'https://example.com/lunch?utm_source=print&table=9&a=b' },
      rule: 1,
      ruleName: 'lunch',
      variant: '',
    });
    expect(await preview('2027-01-04T13:30:00Z')).toMatchObject({
      result: { case: 'targetUrl', value: 'https://example.com/menu?table=4&utm_source=print&a=b#today' },
      rule: 0,
      ruleName: '',
    });
  });

  test('nothing changes when the target is as it was', async () => {
    const code = await account.create();
    await targets().setTarget({ id: code.id, policy: policyOf(LUNCH) });
    const again = await targets().setTarget({ id: code.id, targetUrl: ` ${TARGET} `, policy: policyOf(LUNCH) });
    expect(present(again.target).version).toBe(2);
    const shown = (await account.call<One>('GET', `/qr-codes/${code.id}`)).body.data;
    expect(shown.version).toBe(2);
  });

  test('of two changes of one version, the second fails', async () => {
    const code = await account.create();
    const change = (path: string) =>
      targets().setTarget({ id: code.id, targetUrl: `https://example.com/${path}`, expectedVersion: 1 });
    const results = await Promise.allSettled([change('a'), change('b')]);
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(await failureOf(change('c'))).toMatchObject({
      code: Code.Aborted,
      reason: 'TARGET_CHANGED',
      message: 'The target is now at version 2, not at version 1: read it and try again.',
    });
  });

  const split = (...labels: string[]) =>
    labels.map((label) => ({ label, weight: 1, target_url: 'https://example.com/' }));
  test.each([
    [{ rules: [{ then: { target_url: 'ftp://a' } }] }, 'policy.rules[0].outcome.target_url: must be an absolute http'],
    [
      { rules: [{ then: { split: [...split('a'), { label: 'b', weight: 1, target_url: 'x' }] } }] },
      'policy.rules[0].outcome.split.variants[1].target_url: must be an absolute http',
    ],
    [{ rules: [{ then: { split: split('a', 'a') } }] }, 'policy.rules[0].outcome.split.variants: the label a is used'],
    [{ rules: [{ then: { split: split('a') } }] }, 'policy.rules[0].outcome.split.variants: must contain at least 2'],
    [
      { rules: [{ when: { countries: ['XX'] }, then: { page: 'gone' } }] },
      'policy.rules[0].when.countries: XX is not an assigned code of ISO 3166-1.',
    ],
    [
      { rules: [{ when: { countries: ['de'] }, then: { page: 'gone' } }] },
      'policy.rules[0].when.countries[0]: must be a country such as DE, in capitals, or unknown.',
    ],
    [
      { rules: [{ when: { languages: ['*', 'de_DE'] }, then: { page: 'gone' } }] },
      'policy.rules[0].when.languages[1]: must be a language such as de or de-DE, or *.',
    ],
    [
      { rules: [{ when: { weekly: { ...LUNCH.rules[0]?.when.weekly, from: '24:00' } }, then: { page: 'gone' } }] },
      'policy.rules[0].when.weekly.from: must be a time from 00:00 to 23:59, such as 09:30.',
    ],
    [
      { rules: [{ when: { operating_systems: ['plan 9'] }, then: { page: 'gone' } }] },
      'policy.rules[0].when.operating_systems: plan 9 is none of',
    ],
    [
      { rules: [{ when: { from: '2027-01-01T00:00:00Z', until: '2027-01-01T00:00:00Z' }, then: { page: 'gone' } }] },
      'policy.rules[0].when.until: must be later than from.',
    ],
    [
      { rules: [{ when: { from: '0000-06-01T00:00:00Z' }, then: { page: 'gone' } }] },
      'policy.rules[0].when.from: must be in the years 1 to 9999.',
    ],
    [
      {
        rules: [
          {
            when: { weekly: { ...LUNCH.rules[0]?.when.weekly, time_zone: 'Europe/Atlantis' } },
            then: { page: 'gone' },
          },
        ],
      },
      'policy.rules[0].when.weekly.time_zone: Europe/Atlantis is not in the IANA time zone database.',
    ],
    [
      { rules: [{ name: 'a\0b', then: { page: 'gone' } }] },
      'policy.rules[0].name: must not contain the NUL character.',
    ],
    [
      { rules: [{ then: { split: split('a', 'b\0') } }] },
      'policy.rules[0].outcome.split.variants[1].label: must not contain control characters.',
    ],
    [{ parameters: { 'a\0': 'b' } }, 'policy.parameters: must not contain the NUL character.'],
    [{ rules: Array(21).fill({ then: { page: 'gone' } }) }, 'policy.rules: must contain no more than 20 items'],
  ])('an invalid policy changes nothing, and the error names the field: %#', async (json, sentence) => {
    const code = await account.create();
    const failed = await failureOf(targets().setTarget({ id: code.id, policy: policyOf(json) }));
    expect(failed).toMatchObject({ code: Code.InvalidArgument });
    expect(failed.message).toContain(sentence);
    expect((await targets().getTarget({ id: code.id })).target).toMatchObject({ version: 1 });
  });

  test.each([
    ['in its events', large(30, 'x')],
    ['in its route, where URLs are percent-encoded', large(10, 'é')],
    ['as large as the limits of its parts allow', large(200, '你')],
  ])('a policy that is too large is rejected: %s', async (_, policy) => {
    const { id } = await account.create();
    const failed = { code: Code.InvalidArgument, message: expect.stringContaining('must have at most 60,000 bytes') };
    expect(await failureOf(targets().setTarget({ id, policy }))).toMatchObject(failed);
    expect(await failureOf(targets().previewTarget({ id, policy }))).toMatchObject(failed);
    const { rows } = await database.query('select from outbox where key = $1', [id]);
    expect(rows).toHaveLength(1);
  });

  test.each(['+02:00', '2020-01-01T00:00:00+05:30', '2020-01-01T00:00[Europe/Berlin]'])(
    'a time zone without a name is rejected: %s',
    async (time_zone) => {
      const { id } = await account.create();
      const when = { weekly: { ...LUNCH.rules[0]?.when.weekly, time_zone } };
      const failed = await failureOf(
        targets().setTarget({ id, policy: policyOf({ rules: [{ when, then: { page: 'gone' } }] }) }),
      );
      expect(failed.message).toContain(`${time_zone} is not in the IANA time zone database.`);
    },
  );

  test('codes of other accounts and of other types have no target to change', async () => {
    const other = await api.account();
    const code = await other.create();
    const { id } = code;
    for (const call of [
      () => targets().setTarget({ id, policy: GONE }),
      () => targets().getTarget({ id }),
      () => targets().listTargetVersions({ id }),
      () => targets().getTargetAt({ id, at: timestampFromMs(Date.now()) }),
      () => targets().rollBackTarget({ id, version: 1 }),
      () => targets().previewTarget({ id }),
    ]) {
      expect(await failureOf(call())).toMatchObject({ code: Code.NotFound });
    }
    const codes = internal(api.signpost, CodesService, account.id);
    const { code: page } = await codes.createLandingPageCode({ landingPage: { title: 'Menu', text: 'Open' } });
    expect(await failureOf(targets().setTarget({ id: present(page).id, policy: GONE }))).toMatchObject({
      code: Code.FailedPrecondition,
      reason: 'NO_TARGET',
    });
  });
});

describe('versions', () => {
  test('every change is kept, can be found by its time, and can be rolled back', async () => {
    const code = await account.create();
    const times = [Date.now()];
    await targets().setTarget({ id: code.id, targetUrl: 'https://example.com/2' });
    times.push(Date.now());
    await targets().setTarget({ id: code.id, policy: policyOf(LUNCH) });
    times.push(Date.now());
    // A PATCH ends the policy within the same version.
    await account.call('PATCH', `/qr-codes/${code.id}`, { json: { target_url: 'https://example.com/4' } });
    times.push(Date.now());
    await targets().rollBackTarget({ id: code.id, version: 3, note: 'That was wrong.' });

    const { versions } = await targets().listTargetVersions({ id: code.id });
    expect(versions.map(summary)).toEqual([
      { version: 5, targetUrl: 'https://example.com/2', policy: LUNCH },
      { version: 4, targetUrl: 'https://example.com/4', policy: undefined },
      { version: 3, targetUrl: 'https://example.com/2', policy: LUNCH },
      { version: 2, targetUrl: 'https://example.com/2', policy: undefined },
      { version: 1, targetUrl: TARGET, policy: undefined },
    ]);
    expect(
      versions.map(({ author, note }) => [author === '' ? '' : author === 'api' ? 'api' : 'internal', note]),
    ).toEqual([
      ['internal', 'That was wrong.'],
      ['api', ''],
      ['internal', ''],
      ['internal', ''],
      ['', ''],
    ]);
    for (const [index, time] of times.entries()) {
      const { target } = await targets().getTargetAt({ id: code.id, at: timestampFromMs(time) });
      expect(present(target).version).toBe(index + 1);
    }
    const before = timestampFromMs(Date.parse(code.created_at) - 1);
    expect(await failureOf(targets().getTargetAt({ id: code.id, at: before }))).toMatchObject({ code: Code.NotFound });
    const at = timestampFromMs(0);
    for (const seconds of [10n ** 15n, -(10n ** 15n)]) {
      const wrong = { id: code.id, at: { ...at, seconds } };
      for (const call of [() => targets().getTargetAt(wrong), () => targets().previewTarget(wrong)]) {
        expect(await failureOf(call())).toMatchObject({ message: 'at: must be in the years 1 to 9999.' });
      }
    }
    const unknown = targets().rollBackTarget({ id: code.id, version: 6 });
    expect(await failureOf(unknown)).toMatchObject({ code: Code.NotFound });

    const firstPage = await targets().listTargetVersions({ id: code.id, limit: 2 });
    expect(firstPage.versions.map(({ version }) => version)).toEqual([5, 4]);
    const secondPage = await targets().listTargetVersions({ id: code.id, limit: 3, cursor: firstPage.nextCursor });
    expect(secondPage.versions.map(({ version }) => version)).toEqual([3, 2, 1]);
    expect(secondPage.nextCursor).toBe('');
  });

  test('a policy from before its size was limited is published and read, but no rollback brings it back', async () => {
    const code = await account.create();
    const policy = large(20, 'é');
    await database.query('update codes set policy = $2 where id = $1', [
      decodeId('qr', code.id),
      toJson(PolicySchema, policy),
    ]);
    await account.call('PATCH', `/qr-codes/${code.id}`, { json: { name: 'renamed' } });
    const location = /^https:\/\/example.com\/0-\d-(%C3%A9){2000}$/;
    await expect
      .poll(() => scanned(code), EVENTUALLY)
      .toEqual([expect.stringMatching(location), expect.stringMatching(location)]);
    await targets().setTarget({ id: code.id, policy: {} });
    const { versions } = await targets().listTargetVersions({ id: code.id });
    expect(versions[1]?.policy).toEqual(policy);
    expect(await failureOf(targets().rollBackTarget({ id: code.id, version: 1 }))).toMatchObject({
      message: expect.stringContaining('must have at most 60,000 bytes'),
    });
  });

  test('no rollback brings back a target that has become a scan URL', async () => {
    const { id } = await account.create({ target_url: 'https://later.example/r/abcdefg' });
    await targets().setTarget({ id, targetUrl: TARGET });
    await database.query(`insert into verified_hostnames values ('later.example', $1)`, [newUuid()]);
    expect(await failureOf(targets().rollBackTarget({ id, version: 1 }))).toMatchObject({
      message: 'target_url: must not be a scan URL of this platform.',
    });
  });

  test('the same PATCH removes a policy, and says so in its event', async () => {
    const code = await account.create();
    await targets().setTarget({ id: code.id, policy: GONE });
    await account.call('PATCH', `/qr-codes/${code.id}`, { json: { target_url: TARGET } });
    await account.call('PATCH', `/qr-codes/${code.id}`, { json: { target_url: TARGET } });
    expect((await targets().getTarget({ id: code.id })).target).toMatchObject({ version: 3, author: 'api' });
    await expect.poll(() => scanned(code), EVENTUALLY).toEqual([TARGET, TARGET]);
    const { rows } = await database.query(
      `select convert_from(value, 'utf8')::json as data from outbox
       where topic = 'signpost.events.v1' and key = $1 order by id`,
      [code.id],
    );
    expect(rows.map(({ data }) => [data.changed, data.policy])).toEqual([
      [undefined, undefined],
      [['policy'], policyToJson(GONE)],
      [['policy'], undefined],
    ]);
  });
});

test('a gateway that has no route yet finds the policy in Postgres', async () => {
  // Not announced, so that no gateway knows it.
  const shortCode = newShortCode();
  await database.query(
    `insert into codes (id, account_id, type, short_code, target_url, policy, target_version)
     values ($1, $2, 'dynamic', $3, $4, $5, 2)`,
    [newUuid(), decodeId('acct', account.id), shortCode, TARGET, toJson(PolicySchema, GONE)],
  );
  expect(await scanned({ short_code: shortCode })).toEqual([410, 410]);
});

test('PreviewTarget takes every query that a scan can have', async () => {
  const target = 'https://example.com/menu';
  const code = await account.create({ target_url: target });
  await targets().setTarget({ id: code.id, policy: { passQuery: true } });
  for (const [length, isAdded] of [
    [8_000, true],
    [9_000, false],
    [16_000, false],
  ] as const) {
    const query = `q=${'x'.repeat(length - 2)}`;
    const value = isAdded ? `${target}?${query}` : target;
    expect((await targets().previewTarget({ id: code.id, query })).result).toEqual({ case: 'targetUrl', value });
    const location = async () => {
      const scanUrl = `${api.signpost.gateways[0]?.url}/r/${code.short_code}?${query}`;
      const response = await fetch(scanUrl, { redirect: 'manual' });
      return response.headers.get('location');
    };
    await expect.poll(location, EVENTUALLY).toBe(value);
  }
});

test('PreviewTarget shows a target that is not set yet', async () => {
  const code = await account.create();
  const variants = ['a', 'b'].map((label) => ({ label, weight: 1, target_url: `https://example.com/${label}` }));
  const previewed = policyOf({
    rules: [{ when: { countries: ['DE'], languages: ['de'] }, then: { split: variants } }],
  });
  const preview = (visitor: string, country = 'DE') =>
    targets().previewTarget({ id: code.id, policy: previewed, country, language: 'de-AT', visitor });
  const found = new Set<string>();
  for (let visitor = 0; visitor < 20; visitor++) {
    const { variant, result } = await preview(`${visitor}`);
    expect(result).toEqual({ case: 'targetUrl', value: `https://example.com/${variant}` });
    found.add(variant);
  }
  expect([...found].sort()).toEqual(['a', 'b']);
  expect((await preview('1', 'FR')).result).toEqual({ case: 'targetUrl', value: TARGET });
  const paused = policyOf({ rules: [{ then: { page: 'paused' } }] });
  const page = await targets().previewTarget({ id: code.id, policy: paused });
  expect(page.result).toEqual({ case: 'page', value: Page.PAUSED });
  expect((await targets().getTarget({ id: code.id })).target).toMatchObject({ version: 1 });
});
