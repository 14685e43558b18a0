import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { stringifyYaml } from '@redocly/openapi-core';
import { z } from 'zod';
import type { EventType } from '../common/contract/event-types.ts';
import { GATEWAY_FIGURES } from '../common/contract/gateway-figures.ts';
import type { Topic } from '../common/log/log.ts';
import { EVENTS, ROUTES, SCANS, SCANS_DEAD_LETTERS } from '../common/log/topics.ts';
import { EVENTS_BY_TYPE, type EventDescription } from '../gateway/rest/openapi/event-schema.ts';

/** A part of the document, whose content a linter and a test check. */
type Part = Readonly<Record<string, unknown>>;

/** No event type is missing. */
const EVENT_MESSAGES: Readonly<Record<EventType, EventDescription>> = EVENTS_BY_TYPE;

/** A TypeID with this prefix. */
const id = (prefix: string) => `${prefix}_[0-7][0-9a-hjkmnp-tv-z]{25}`;
const textLike = (pattern: string, description: string): Part => ({
  type: 'string',
  pattern: `^${pattern}$`,
  description,
});

/** The header `gateway-figures` of scans. */
const FIGURES: Part = {
  type: 'string',
  description:
    'On one record of each batch, for the ledger: JSON, an array of `[gateway, day, answered, lost, published]`. The run ' +
    'of a gateway (16 hexadecimal digits), a UTC day, and counts of its scans so far, which only increase.',
  examples: ['[["0123456789abcdef","2026-11-20",1204,0,1200]]'],
};

/** The headers of a record's trace, if the process that wrote it exports traces. */
const TRACE: Part = {
  traceparent: {
    type: 'string',
    description:
      'The trace that the record belongs to (W3C Trace Context), if traces are exported; with `tracestate` if there is one.',
    examples: ['00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'],
  },
};

/** The content of `docs/asyncapi.yaml`. */
export function asyncapiYaml(): string {
  return `# Written by npm run generate.\n${stringifyYaml(asyncapiDocument(), { noRefs: true, lineWidth: -1 })}`;
}

/** The topics that consumers may read, as AsyncAPI 3.0, from the schemas that the code uses. */
function asyncapiDocument(): Part {
  const schemas: Record<string, Part> = {};
  const events = Object.entries(EVENT_MESSAGES).map(([type, event]) => [type, eventMessage(type, event, schemas)]);
  const messages: Record<string, Part> = {
    ...Object.fromEntries(events),
    scan: {
      name: 'scan',
      summary: 'One scan of a code, as the gateway that answered it saw it.',
      contentType: 'application/x-protobuf',
      headers: { type: 'object', properties: { [GATEWAY_FIGURES]: FIGURES, ...TRACE } },
      payload: protobuf('scans/v1/scan.proto'),
      bindings: { kafka: { key: textLike(id('qr'), 'The scanned code.') } },
    },
    deadLetter: {
      name: 'deadLetter',
      summary: 'A record of the topic of scans that the recorder could not process.',
      contentType: 'application/x-protobuf',
      headers: {
        type: 'object',
        required: ['reason'],
        properties: { reason: { type: 'string', description: 'Why, as a sentence.' }, ...TRACE },
      },
      payload: protobuf('scans/v1/scan.proto'),
      bindings: { kafka: { key: { type: 'string', description: 'The key of the record.' } } },
    },
    route: {
      name: 'route',
      summary: 'The current target of a short code, or the account that a custom domain serves.',
      contentType: 'application/x-protobuf',
      headers: { type: 'object', properties: TRACE },
      payload: protobuf('routes/v1/route.proto'),
      bindings: { kafka: { key: textLike('(code|host):.+', '`code:{short_code}` or `host:{hostname}`.') } },
    },
  };
  const channels = {
    events: channel(EVENTS, 'Changes of codes, batches, domains and teams, in order for each subject.', [
      ...Object.keys(EVENT_MESSAGES),
    ]),
    scans: channel(SCANS, 'Scans for the recorder, without addresses of visitors.', ['scan']),
    deadLetters: channel(
      SCANS_DEAD_LETTERS,
      'Records of the topic of scans that could not be processed, without personal data; a value that is no scan is omitted.',
      ['deadLetter'],
    ),
    routes: channel(ROUTES, 'The newest state of every short code and custom domain, for gateways.', ['route']),
  };
  return {
    // Generators of code do not read 3.1 yet, of which nothing is used.
    asyncapi: '3.0.0',
    info: {
      title: 'Signpost on Kafka',
      version: '1.0.0',
      description:
        'The topics of Signpost. Records are delivered at least once: consumers recognise repeated ones by `ce_id`, by the id of a scan, or by the version of a route. Fields, their values and types of events may be added; ignore unknown ones. A change that would break consumers gets a new topic, with a higher version in its name.',
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    defaultContentType: 'application/json',
    servers: { kafka: { host: 'localhost:9092', protocol: 'kafka', description: 'One of `KAFKA_BROKERS`.' } },
    channels,
    operations: Object.fromEntries(
      Object.entries(channels).map(([name, { description }]) => [
        `send${name.replace(/^./, (letter) => letter.toUpperCase())}`,
        { action: 'send', summary: description, channel: { $ref: `#/channels/${name}` } },
      ]),
    ),
    components: { messages, schemas },
  };
}

function channel({ name, partitions, retention }: Topic, description: string, messages: readonly string[]) {
  const compacted = retention === 'compact';
  const topicConfiguration = compacted
    ? { 'cleanup.policy': ['compact'] }
    : { 'cleanup.policy': ['delete'], 'retention.ms': retention };
  return {
    address: name,
    description,
    messages: Object.fromEntries(messages.map((each) => [each, { $ref: `#/components/messages/${each}` }])),
    bindings: { kafka: { topic: name, partitions, topicConfiguration, bindingVersion: '0.5.0' } },
  };
}

/** A CloudEvent 1.0 in binary mode: attributes in headers, the data alone in the value. */
function eventMessage(type: string, event: EventDescription, schemas: Record<string, Part>): Part {
  const { summary, data, example, subject } = event;
  const headers = {
    ce_specversion: { type: 'string', const: '1.0' },
    ce_id: textLike(
      id('evt'),
      'The event. A repeated event has the same id, which is also the `webhook-id` of webhooks.',
    ),
    ce_type: { type: 'string', const: type },
    ce_source: textLike(`/accounts/${id('acct')}`, 'The account.'),
    ce_subject: textLike(id(subject), 'The resource; also the key of the record.'),
    ce_time: { type: 'string', format: 'date-time', description: 'When it happened.' },
    ...(subject === 'qr' && {
      ce_sequence: textLike(
        '[1-9][0-9]*',
        'The version of the code, a decimal number: of two events, the higher is newer.',
      ),
    }),
    'content-type': { type: 'string', const: 'application/json' },
  };
  const sample = {
    ce_specversion: '1.0',
    ce_id: 'evt_01kagcpnc4fyqs2tkrv0q5x8de',
    ce_type: type,
    ce_source: '/accounts/acct_01kagcpn7kf8hs8qf3a0w3yd1m',
    ce_subject: example.id,
    ce_time: '2026-11-20T09:30:00.000Z',
    ...(subject === 'qr' && { ce_sequence: String(example.version) }),
    'content-type': 'application/json',
  };
  return {
    name: type,
    summary,
    headers: { type: 'object', required: Object.keys(headers), properties: { ...headers, ...TRACE } },
    payload: jsonSchema(data, schemas),
    bindings: { kafka: { key: textLike(id(subject), 'The resource.') } },
    examples: [{ headers: sample, payload: example }],
  };
}

function protobuf(path: string): Part {
  return { schemaFormat: 'application/vnd.google.protobuf;version=3', schema: withoutOwnImports(`signpost/${path}`) };
}

/**
 * A proto file with the messages of those that it imports from `proto/` after its own, in one package: a document's
 * reader has no other file, and AsyncAPI's parser of protobuf schemas rejects imports that it does not know.
 */
function withoutOwnImports(path: string): string {
  const read = (name: string) => readFileSync(resolve(import.meta.dirname, '../proto', name), 'utf8');
  const own = /^import "(signpost\/.*)";\n/gm;
  let text = read(path);
  const imported = [...text.matchAll(own)].map(([, name = '']) => read(name));
  const others = new Set(imported.flatMap((each) => each.match(/^import .*$/gm) ?? []));
  text = text.replace(own, '').replace(/^package .*\n/m, (line) => [line, ...others, ''].join('\n'));
  for (const each of imported) {
    const [, name = ''] = /^package (.*);$/m.exec(each) ?? [];
    text = `${text.replaceAll(`${name}.`, '')}\n${each.slice(each.search(/^(\/\/.*\n)*(message|enum) /m))}`;
  }
  return text;
}

/** JSON Schema draft 7, which AsyncAPI uses; named schemas are moved to the components. */
function jsonSchema(schema: z.ZodType, schemas: Record<string, Part>): Part {
  const {
    $schema: _dialect,
    definitions = {},
    ...json
  }: Part = z.toJSONSchema(schema, {
    io: 'input',
    target: 'draft-7',
  });
  const moved = (part: unknown): Part =>
    JSON.parse(JSON.stringify(part).replaceAll('"#/definitions/', '"#/components/schemas/'));
  for (const [name, definition] of Object.entries(definitions as Part)) schemas[name] = named(moved(definition));
  const { id: name, ...rest } = moved(json);
  if (typeof name !== 'string') return rest;
  schemas[name] = rest;
  return { $ref: `#/components/schemas/${name}` };
}

function named({ id: _name, ...schema }: Part): Part {
  return schema;
}
