import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Parser } from '@asyncapi/parser';
import { create, fromBinary } from '@bufbuild/protobuf';
import { timestampNow } from '@bufbuild/protobuf/wkt';
import { parseYaml } from '@redocly/openapi-core';
import { Ajv } from 'ajv';
import pg from 'pg';
import { pino } from 'pino';
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { EVENT_TYPES } from '../../common/contract/event-types.ts';
import { decodeId, encodeId, newUuid } from '../../common/contract/ids.ts';
import type { LogRecord } from '../../common/log/log.ts';
import { openPostgresLog } from '../../common/log/postgres.ts';
import { EVENTS, ROUTES, SCANS, SCANS_DEAD_LETTERS } from '../../common/log/topics.ts';
import { policyFromJson } from '../../common/targets/policy-json.ts';
import { asyncapiYaml } from '../../docs/asyncapi.ts';
import { MemberSchema, Role } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { DomainSchema } from '../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { RouteSchema } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import { ScanSchema } from '../../proto/gen/signpost/scans/v1/scan_pb.ts';
import type { Policy } from '../../proto/gen/signpost/targets/v1/policy_pb.ts';
import { TargetsService } from '../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { domainLive, memberAdded, memberRemoved } from '../../src/events/events.ts';
import { internal } from '../contract/internal.ts';
import { afterFile } from '../harness/after-file.ts';
import { startSignpost } from '../harness/processes.ts';

interface Message {
  readonly headers: object;
  readonly payload: object;
  readonly bindings: { readonly kafka: { readonly key: object } };
  readonly examples: readonly { readonly headers: object; readonly payload: object }[];
}

/** The key of a record of the topic of scans that is no scan. */
const NO_SCAN = 'no scan';

/** With every field. */
const POLICY = {
  rules: [
    {
      name: 'lunch',
      when: {
        from: '2027-01-01T00:00:00.000Z',
        until: '2028-01-01T00:00:00.000Z',
        weekly: { time_zone: 'Europe/Berlin', days: ['mon', 'tue'], from: '11:00', until: '14:30' },
        countries: ['DE'],
        languages: ['de'],
        devices: ['mobile'],
        operating_systems: ['ios'],
      },
      then: { target_url: 'https://example.com/lunch' },
    },
    { when: { countries: ['FR'] }, then: { page: 'paused' } },
    {
      then: {
        split: [
          { label: 'a', weight: 3, target_url: 'https://example.com/a' },
          { label: 'b', weight: 1, target_url: 'https://example.com/b' },
        ],
      },
    },
  ],
  pass_query: true,
  parameters: { utm_source: 'print' },
};

const EVENTUALLY = { timeout: 25_000, interval: 50 };
const yaml = readFileSync('docs/asyncapi.yaml', 'utf8');
const document = parseYaml(yaml) as {
  channels: Record<string, { address: string; messages: Record<string, object> }>;
  components: { messages: Record<string, Message>; schemas: object };
};

/** With the document's own components; what a schema does not name is an error. */
function problems(schema: object, value: unknown): unknown {
  const strict = JSON.parse(JSON.stringify({ ...schema, components: document.components }), (_, part) =>
    part?.type === 'object' && part.properties ? { additionalProperties: false, ...part } : part,
  );
  delete strict.additionalProperties;
  const validate = new Ajv({ strict: false, allErrors: true, validateFormats: false }).compile(strict);
  return validate(value) ? undefined : validate.errors;
}

function message(name: string): Message {
  const found = document.components.messages[name];
  if (!found) throw new Error(`the document has no message ${name}`);
  return found;
}

/** Everything that a Signpost sent of which each kind of change was made once. */
const records = new Map<string, LogRecord[]>();

beforeAll(async () => {
  const signpost = await startSignpost();
  const { apiKey, accountId } = await signpost.createAccount();
  const call = async (method: string, path: string, json?: unknown) => {
    const body = json === undefined ? null : JSON.stringify(json);
    const headers = { authorization: `Bearer ${apiKey}` };
    const response = await fetch(`${signpost.url}/api/v1${path}`, { method, headers, body });
    expect([path, response.ok]).toEqual([path, true]);
    return ((await response.json()) as { data: { id: string; short_code: string } }).data;
  };
  const code = { target_url: 'https://example.com/menu', name: 'Table 4', folder: 'Berlin', tags: ['a', 'b'] };
  const { id, short_code } = await call('POST', '/qr-codes', code);
  expect((await fetch(`${signpost.url}/r/${short_code}`, { redirect: 'manual' })).status).toBe(302);
  const { policy } = policyFromJson(POLICY) as { policy: Policy };
  await internal(signpost, TargetsService, accountId).setTarget({ id, policy });
  await call('PATCH', `/qr-codes/${id}`, { paused: true, folder: null, name: '' });
  await call('POST', '/batches', { rows: [code, { target_url: 'no address' }] });
  await call('DELETE', `/qr-codes/${id}`);

  const pool = new pg.Pool({ connectionString: signpost.databaseUrl, max: 2 });
  const account = decodeId('acct', accountId) ?? '';
  const createdAt = timestampNow();
  const member = create(MemberSchema, {
    id: encodeId('mbr', newUuid()),
    email: 'ada@example.com',
    role: Role.EDITOR,
    createdAt,
  });
  const domain = create(DomainSchema, { id: encodeId('domain', newUuid()), hostname: 'qr.example.com', createdAt });
  await memberAdded(pool, account, member);
  await memberRemoved(pool, account, member);
  await domainLive(pool, account, domain);
  await pool.end();

  const log = openPostgresLog({
    url: signpost.databaseUrl,
    clientId: 'signpost-test',
    logger: pino({ level: 'silent' }),
  });
  afterFile(() => log.close());
  for (const { name } of [EVENTS, SCANS, SCANS_DEAD_LETTERS, ROUTES]) {
    const got: LogRecord[] = [];
    records.set(name, got);
    log.follow({ topic: name, from: new Map(), handle: (more) => void got.push(...more) });
  }
  await vi.waitFor(() => {
    const types = records.get(EVENTS.name)?.map(({ headers }) => headers.ce_type);
    expect(new Set(types)).toEqual(new Set(EVENT_TYPES));
    expect(records.get(SCANS.name)).toHaveLength(1);
    expect(records.get(ROUTES.name)?.length).toBeGreaterThan(0);
  }, EVENTUALLY);
  await log.publish(SCANS.name, [{ key: NO_SCAN, value: Buffer.from('nonsense') }]);
  await vi.waitFor(() => expect(records.get(SCANS_DEAD_LETTERS.name)).toHaveLength(1), EVENTUALLY);
}, 90_000);

test('the document is what the code makes it: valid AsyncAPI 3.0, as the reference parser reads it', async () => {
  expect(parseYaml(yaml)).toEqual(parseYaml(asyncapiYaml()));
  const { document: parsed, diagnostics } = await new Parser().parse(yaml);
  const found = diagnostics.filter(({ code }) => code !== 'asyncapi-latest-version');
  expect(found.map(({ code, message, path }) => `${code} at ${path.join('/')}: ${message}`)).toEqual([]);
  expect(parsed?.version()).toBe('3.0.0');
});

test.each(['scan', 'deadLetter', 'route'])(
  'the protobuf schema of a %s needs no other file of Signpost',
  async (name) => {
    const folder = await mkdtemp(join(tmpdir(), 'signpost-asyncapi-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    await cp('third_party/buf', join(folder, 'buf'), { recursive: true });
    const { schema } = message(name).payload as { schema: string };
    await writeFile(join(folder, 'message.proto'), schema);
    await promisify(execFile)('buf', ['build', folder]);
  },
);

test('it has all topics, and every type of event and no other', () => {
  const channels = Object.values(document.channels);
  expect(channels.map(({ address }) => address)).toEqual(
    [EVENTS, SCANS, SCANS_DEAD_LETTERS, ROUTES].map(({ name }) => name),
  );
  expect(Object.keys(channels[0]?.messages ?? {})).toEqual([...EVENT_TYPES]);
});

test('the event of a changed policy carries the policy', () => {
  const data = records
    .get(EVENTS.name)
    ?.map(({ value }) => JSON.parse(String(value)))
    .find(({ changed }) => changed?.includes('policy'));
  expect(data.policy).toEqual(POLICY);
});

test.each(EVENT_TYPES)('%s: what is really sent fits, and so does the example', (type) => {
  const { headers, payload, bindings, examples } = message(type);
  const sent = records.get(EVENTS.name)?.filter((record) => record.headers.ce_type === type) ?? [];
  expect(sent.length).toBeGreaterThan(0);
  for (const record of sent) {
    expect(problems(headers, record.headers)).toBeUndefined();
    expect(problems(payload, JSON.parse(String(record.value)))).toBeUndefined();
    expect(problems(bindings.kafka.key, record.key)).toBeUndefined();
    expect(record.key).toBe(record.headers.ce_subject);
  }
  for (const example of examples) {
    expect(problems(headers, example.headers)).toBeUndefined();
    expect(problems(payload, example.payload)).toBeUndefined();
  }
});

test('scans, dead letters and routes are the messages that the document has, under their keys', () => {
  for (const { headers } of records.get(SCANS_DEAD_LETTERS.name) ?? []) {
    expect(problems(message('deadLetter').headers, headers)).toBeUndefined();
  }
  const scans = records.get(SCANS.name)?.filter(({ key }) => key !== NO_SCAN) ?? [];
  expect(scans.flatMap(({ headers }) => headers['gateway-figures'] ?? [])).not.toEqual([]);
  for (const { key, headers, value } of scans) {
    expect(problems(message('scan').headers, headers)).toBeUndefined();
    expect(problems(message('scan').bindings.kafka.key, key)).toBeUndefined();
    const { codeId, $unknown } = fromBinary(ScanSchema, value ?? new Uint8Array());
    expect([codeId, $unknown]).toEqual([key, undefined]);
  }
  for (const { key, value } of records.get(ROUTES.name) ?? []) {
    expect(problems(message('route').bindings.kafka.key, key)).toBeUndefined();
    const { entry, $unknown } = fromBinary(RouteSchema, value ?? new Uint8Array());
    expect([entry.case, $unknown]).toEqual([key.split(':')[0], undefined]);
  }
});
