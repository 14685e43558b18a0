import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import kafkajs, { type AclEntry } from 'kafkajs';
import { pino } from 'pino';
import { beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { openKafkaLog } from '../common/log/kafka.ts';
import { KAFKA_VARIABLES, readKafkaSecurity } from '../common/log/kafka-variables.ts';
import type { Log, Subscription } from '../common/log/log.ts';
import { EVENTS, ROUTES, SCANS, SCANS_DEAD_LETTERS, TOPICS } from '../common/log/topics.ts';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { readVariables } from '../common/runtime/variables.ts';
import { EventsService } from '../proto/gen/signpost/events/v1/events_pb.ts';
import { internal } from './contract/internal.ts';
import { afterFile } from './harness/after-file.ts';
import { startSignpost } from './harness/processes.ts';
import { recordingLogger } from './harness/recording-logger.ts';
import { type SecuredBroker, startSecuredKafka } from './harness/secured-kafka.ts';

const EVENTUALLY = { timeout: 120_000, interval: 200 };
const DOCS = join(import.meta.dirname, '../docs/operating/kafka.md');
const REFUSED = /not authorized|authorization failed/i;
/** What kafkajs says where a group, or a transactional id, is not for this user. */
const NO_COORDINATOR = 'Failed to find group coordinator';
const PASSWORDS = { 'signpost-core': randomUUID(), 'signpost-gateway': randomUUID(), billing: randomUUID() };
type User = keyof typeof PASSWORDS;

const silent = pino({ level: 'silent' });
// The authorizer and the users have to be ours.
const ours = inject('kafkaBrokers') !== null && !process.env.KAFKA_BROKERS;

const RESOURCES = {
  topic: kafkajs.AclResourceTypes.TOPIC,
  group: kafkajs.AclResourceTypes.GROUP,
  'transactional-id': kafkajs.AclResourceTypes.TRANSACTIONAL_ID,
};
const OPERATIONS = {
  Create: kafkajs.AclOperationTypes.CREATE,
  DescribeConfigs: kafkajs.AclOperationTypes.DESCRIBE_CONFIGS,
  Read: kafkajs.AclOperationTypes.READ,
  Write: kafkajs.AclOperationTypes.WRITE,
};

/** The rights that the documents' commands give. */
async function documentedRights(): Promise<AclEntry[]> {
  const commands = (await readFile(DOCS, 'utf8')).match(/^\$acls .*$/gm) ?? [];
  return commands.flatMap((command) => {
    const words = command.split(' ').slice(1);
    const valuesOf = (option: string) =>
      words.flatMap((word, index) => (word === `--${option}` ? [words[index + 1] ?? ''] : []));
    const [kind, resourceName = ''] =
      Object.keys(RESOURCES)
        .map((name) => [name, valuesOf(name)[0]] as const)
        .find(([, name]) => name !== undefined) ?? [];
    const prefixed = valuesOf('resource-pattern-type')[0] === 'prefixed';
    return valuesOf('operation').map((operation) => ({
      principal: valuesOf('allow-principal')[0] ?? '',
      host: '*',
      permissionType: kafkajs.AclPermissionTypes.ALLOW,
      operation: OPERATIONS[operation as keyof typeof OPERATIONS],
      resourceType: RESOURCES[kind as keyof typeof RESOURCES],
      resourceName,
      resourcePatternType: kafkajs.ResourcePatternTypes[prefixed ? 'PREFIXED' : 'LITERAL'],
    }));
  });
}

describe.skipIf(!ours)('over a Kafka with an authorizer, TLS and logins', () => {
  let broker: SecuredBroker;
  let variables: Record<User, Record<string, string>>;
  let admin: kafkajs.Admin;

  beforeAll(async () => {
    broker = await startSecuredKafka(PASSWORDS);
    afterFile(() => broker.stop());
    const certificate = await broker.authority.issue('client');
    const shared = {
      KAFKA_TLS: 'true',
      KAFKA_CA: broker.authority.certFile,
      KAFKA_CERT: certificate.certFile,
      KAFKA_KEY: certificate.keyFile,
      KAFKA_SASL_MECHANISM: 'scram-sha-512',
    };
    const of = (user: User) => ({ ...shared, KAFKA_USERNAME: user, KAFKA_PASSWORD: PASSWORDS[user] });
    variables = {
      'signpost-core': of('signpost-core'),
      'signpost-gateway': of('signpost-gateway'),
      billing: of('billing'),
    };
    admin = new kafkajs.Kafka({ brokers: [broker.brokers], logLevel: kafkajs.logLevel.NOTHING }).admin();
    await admin.connect();
    afterFile(() => admin.disconnect());
    await admin.createAcls({ acl: await documentedRights() });
  }, 180_000);

  function open(user: User, over: Record<string, string | undefined> = {}, logger = silent): Log {
    const security = readKafkaSecurity(readVariables(KAFKA_VARIABLES, { ...variables[user], ...over }));
    const log = openKafkaLog({ brokers: [broker.clients], security, clientId: 'test', logger });
    onTestFinished(() => log.close());
    return log;
  }

  /** How many records a topic has ever had. */
  async function recordsIn(topic: string): Promise<number> {
    const offsets = await admin.fetchTopicOffsets(topic);
    return offsets.reduce((sum, { high }) => sum + Number(high), 0);
  }

  /** The first error of a reader, or its first record's topic. */
  function firstOf(
    read: (told: { handle(): Promise<void>; onError(error: unknown): void }) => Subscription,
  ): Promise<unknown> {
    return new Promise((resolve) => {
      read({ handle: async () => resolve('a record'), onError: (error) => resolve(error) });
    });
  }

  test('core, gateways and consumers of events do all their work with the documented rights', async () => {
    const signpost = await startSignpost({
      kafkaBrokers: broker.clients,
      gateways: 2,
      env: variables['signpost-core'],
      gatewayEnv: variables['signpost-gateway'],
    });
    const { apiKey } = await signpost.createAccount();
    const call = async (method: string, path: string, json?: unknown) => {
      const answer = await fetch(`${signpost.url}/api/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${apiKey}` },
        ...(json === undefined ? {} : { body: JSON.stringify(json) }),
      });
      return ((await answer.json()) as { data: { id: string; short_code: string; scan_count: number } }).data;
    };
    const { id, short_code } = await call('POST', '/qr-codes', { target_url: 'https://example.com/' });
    const scan = (gateway: number) =>
      fetch(`${signpost.gateways[gateway]?.url}/r/${short_code}`, { redirect: 'manual' }).then(
        ({ headers }) => headers.get('location') ?? '',
      );
    expect(await scan(0)).toBe('https://example.com/');
    // Changes get from the gateway that carried them to the other one by the topic of routes alone, once it knows a
    // code.
    expect(await scan(1)).toBe('https://example.com/');
    const routesTaken = async () => {
      const ready = await fetch(`${signpost.gateways[1]?.url}/readyz`);
      return ((await ready.json()) as { routes: { taken: number } }).routes.taken;
    };
    await expect.poll(routesTaken, EVENTUALLY).toBeGreaterThan(0);
    await call('PATCH', `/qr-codes/${id}`, { target_url: 'https://example.com/new' });
    await expect.poll(() => scan(1), EVENTUALLY).toBe('https://example.com/new');
    // Gateways publish scans, and the recorder reads them, dead letters too.
    await expect.poll(async () => (await call('GET', `/qr-codes/${id}`)).scan_count, EVENTUALLY).toBeGreaterThan(2);
    await open('signpost-gateway').publish(SCANS.name, [{ key: 'x', value: Buffer.from('no scan') }]);
    await expect.poll(() => recordsIn(SCANS_DEAD_LETTERS.name), EVENTUALLY).toBe(1);
    // The relay has published the events, which the worker's group has read, and others may.
    const events: string[] = [];
    const billing = open('billing');
    billing.consume({
      topic: EVENTS.name,
      group: 'billing',
      handle: async (records) => void events.push(...records.map(({ headers }) => headers.ce_type ?? '')),
    });
    await expect.poll(() => events, EVENTUALLY).toEqual(['qr.created', 'qr.updated']);
    const committed = async () => {
      const [topic] = await admin.fetchOffsets({ groupId: 'signpost.webhooks', topics: [EVENTS.name] });
      return topic?.partitions.reduce((sum, { offset }) => sum + Math.max(0, Number(offset)), 0);
    };
    await expect.poll(committed, EVENTUALLY).toBe(2);
    // An operator compares the topics with what was published, and publishes events again.
    const operator = internal(signpost, EventsService);
    expect(await operator.auditEvents({})).toMatchObject({ events: { missing: 0n }, routes: { missing: 0n } });
    expect(await operator.republishEvents({ all: true })).toMatchObject({ events: 2n });
    for (const each of [...signpost.cores, ...signpost.gateways])
      expect(await each.log()).not.toContain('Kafka refuses');
    await signpost.stop();
  }, 300_000);

  describe('once the topics exist,', () => {
    beforeAll(async () => {
      const core = openKafkaLog({ brokers: [broker.brokers], clientId: 'test', logger: silent });
      await core.ensureTopics(TOPICS);
      for (const { name } of TOPICS) await core.publish(name, [{ key: 'k', value: Buffer.from('v') }]);
      await core.close();
    });

    test.each<[User, string]>([
      ['signpost-gateway', ROUTES.name],
      ['signpost-gateway', EVENTS.name],
      ['signpost-gateway', SCANS_DEAD_LETTERS.name],
      ['signpost-core', SCANS.name],
      ['billing', EVENTS.name],
      ['billing', SCANS.name],
    ])('%s can not publish to %s', async (user, topic) => {
      const before = await recordsIn(topic);
      await expect(open(user).publish(topic, [{ key: 'k', value: Buffer.from('v') }])).rejects.toThrow(REFUSED);
      expect(await recordsIn(topic)).toBe(before);
    });

    test.each<[User, string]>([
      ['signpost-gateway', SCANS.name],
      ['signpost-gateway', EVENTS.name],
      ['billing', SCANS.name],
      ['billing', ROUTES.name],
    ])('%s can not read %s', async (user, topic) => {
      const log = open(user);
      const follow = await firstOf((told) => log.follow({ topic, from: new Map(), ...told }));
      expect(String(follow)).toMatch(REFUSED);
    });

    test('who may not see a topic is told so by its name', async () => {
      await expect(open('billing').identity(ROUTES.name)).rejects.toThrow(
        `a permission for topic ${ROUTES.name} is missing`,
      );
    });

    test.each<[User, string, string]>([
      ['signpost-gateway', 'signpost.recorder', ROUTES.name],
      ['signpost-gateway', 'signpost.webhooks', ROUTES.name],
      ['billing', 'signpost.webhooks', EVENTS.name],
    ])('%s can not join the group %s', async (user, group, topic) => {
      const log = open(user);
      expect(String(await firstOf((told) => log.consume({ topic, group, ...told })))).toContain(NO_COORDINATOR);
    });

    test.each<User>(['signpost-gateway', 'billing'])('%s can not lead in the relay’s place', async (user) => {
      const over = { query: () => Promise.reject(new Error('is not asked')) };
      await expect(open(user).openFencedPublisher('signpost.relay.signpost', over)).rejects.toThrow(NO_COORDINATOR);
    });

    test.each<User>(['signpost-gateway', 'billing'])('%s can neither create topics nor delete them', async (user) => {
      const wanted = { name: 'signpost.mine', partitions: 1, retention: 60_000 };
      const { lines, logger: recording } = recordingLogger();
      await expect(open(user, {}, recording).ensureTopics([wanted])).rejects.toThrow('Topic creation errors');
      expect(String(lines)).toContain('creating topic signpost.mine: Not authorized');
      const security = readKafkaSecurity(readVariables(KAFKA_VARIABLES, variables[user]));
      const logLevel = kafkajs.logLevel.NOTHING;
      const client = new kafkajs.Kafka({ ...security, brokers: [broker.clients], logLevel }).admin();
      await client.connect();
      onTestFinished(() => client.disconnect());
      await expect(client.deleteTopics({ topics: [ROUTES.name] })).rejects.toThrow();
      const topics = await admin.listTopics();
      expect(topics).not.toContain(wanted.name);
      expect(topics).toContain(ROUTES.name);
    });
  });

  test.each(['plain', 'scram-sha-256', 'scram-sha-512'])(
    '%s lets in who has the password, and nobody else',
    async (mechanism) => {
      await open('billing', { KAFKA_SASL_MECHANISM: mechanism }).check();
      const wrong = open('billing', { KAFKA_SASL_MECHANISM: mechanism, KAFKA_PASSWORD: 'wrong' });
      await expect(wrong.check()).rejects.toThrow(/authentication failed/i);
    },
  );

  test('a broker that another authority signed is not trusted, and one that asks for a certificate gets it', async () => {
    await expect(open('billing', { KAFKA_CA: undefined }).check()).rejects.toThrow(/certificate/i);
    await expect(open('billing', { KAFKA_CERT: undefined, KAFKA_KEY: undefined }).check()).rejects.toThrow();
  });

  test('a certificate alone has the rights of the name in it', async () => {
    const of = async (name: string) => {
      const { certFile, keyFile } = await broker.authority.issue(name);
      const env = {
        KAFKA_TLS: 'true',
        KAFKA_CA: broker.authority.certFile,
        KAFKA_CERT: certFile,
        KAFKA_KEY: keyFile,
      };
      const security = readKafkaSecurity(readVariables(KAFKA_VARIABLES, env));
      const log = openKafkaLog({ brokers: [broker.byCertificate], security, clientId: 'test', logger: silent });
      onTestFinished(() => log.close());
      return log;
    };
    const record = { key: 'k', value: Buffer.from('v') };
    await (await of('signpost-gateway')).publish(SCANS.name, [record]);
    await expect((await of('billing')).publish(SCANS.name, [record])).rejects.toThrow(REFUSED);
  });

  test.each<[string, Record<string, string | undefined>, RegExp]>([
    ['a wrong password', { KAFKA_PASSWORD: 'not-the-password' }, /^the brokers refuse the login: check KAFKA_USERNAME/],
    [
      'a wrong password over plain',
      { KAFKA_SASL_MECHANISM: 'plain', KAFKA_PASSWORD: 'not-the-password' },
      /^the brokers refuse the login: check KAFKA_USERNAME/,
    ],
    ['another CA', { KAFKA_CA: undefined }, /^the certificate of a broker is not accepted: check KAFKA_CA/],
    [
      'no certificate',
      { KAFKA_CERT: undefined, KAFKA_KEY: undefined },
      /^the brokers refuse the client certificate, or want one: check KAFKA_CERT/,
    ],
    [
      'a missing right',
      {},
      /^a permission is missing: compare those of KAFKA_USERNAME with docs\/operating\/kafka\.md/,
    ],
  ])(
    '%s is logged as one sentence, once, and without secrets',
    async (_, over, sentence) => {
      const { lines, logger: recording } = recordingLogger();
      const log = open('billing', over, recording);
      const attempts = async () => {
        for (let attempt = 0; attempt < 3; attempt++) {
          await log.publish(SCANS.name, [{ key: 'k', value: Buffer.from('v') }]).catch(() => undefined);
          await log.ensureTopics([{ name: 'signpost.mine', partitions: 1, retention: 60_000 }]).catch(() => undefined);
        }
      };
      await attempts();
      const logged = lines.map((line) => JSON.parse(line) as { level: number; msg: string; reason: string });
      expect(logged).toEqual([expect.objectContaining({ level: 50, msg: 'Kafka refuses this program' })]);
      expect(logged[0]?.reason).toMatch(sentence);
      expect(String(lines)).not.toMatch(new RegExp(`not-the-password|${Object.values(PASSWORDS).join('|')}`));
    },
    60_000,
  );

  test('a group and a transactional id of others are reported as missing rights', async () => {
    const { lines, logger: recording } = recordingLogger();
    const log = open('billing', {}, recording);
    await firstOf((told) => log.consume({ topic: EVENTS.name, group: 'signpost.webhooks', ...told }));
    await expect.poll(() => String(lines), EVENTUALLY).toContain('a permission is missing');
  });

  test('brokers without TLS are recognised', async () => {
    const { lines, logger: recording } = recordingLogger();
    const security = readKafkaSecurity(readVariables(KAFKA_VARIABLES, variables.billing));
    const log = openKafkaLog({ brokers: [broker.brokers], security, clientId: 'test', logger: recording });
    onTestFinished(() => log.close());
    await expect(log.check()).rejects.toThrow();
    expect(String(lines)).toContain('a broker closes connections during the TLS handshake');
  });
});

test.each([
  [{ KAFKA_CA: 'ca.pem' }, 'KAFKA_CA, KAFKA_CERT and KAFKA_KEY need KAFKA_TLS=true.'],
  [{ KAFKA_TLS: 'true', KAFKA_CERT: 'cert.pem' }, 'KAFKA_CERT and KAFKA_KEY must both be set, or neither.'],
  [{ KAFKA_TLS: 'true', KAFKA_CA: '/nowhere.pem' }, "KAFKA_CA /nowhere.pem can't be read (ENOENT)."],
  [{ KAFKA_TLS: 'true', KAFKA_CA: 'package.json' }, 'KAFKA_CA package.json must be a PEM file of certificates.'],
  [
    { KAFKA_USERNAME: 'core', KAFKA_PASSWORD: 'secret' },
    'KAFKA_SASL_MECHANISM, KAFKA_USERNAME and KAFKA_PASSWORD must all be set, or none of them.',
  ],
  [{ KAFKA_SASL_MECHANISM: 'gssapi' }, 'KAFKA_SASL_MECHANISM must be one of plain, scram-sha-256, scram-sha-512.'],
])('%j does not start', (env, sentence) => {
  expect(() => readKafkaSecurity(readVariables(KAFKA_VARIABLES, env))).toThrow(new OperatorError(sentence));
});
