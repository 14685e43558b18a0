import { z } from 'zod';
import { MAX_BATCH_BODY, MAX_BODY } from '../body/request-limits.ts';
import { type Endpoint, SECTIONS } from '../endpoint.ts';
import { batchExample } from '../resources/batch-schema.ts';
import { codeExample } from '../resources/code-schema.ts';
import { EVENTS_BY_TYPE, type EventDescription } from './event-schema.ts';
import { ERROR_EXAMPLES, ERROR_HEADERS, type ErrorCases, EVERYWHERE, errorSchema, RATE } from './openapi-errors.ts';
import type { Header, OpenApiDocument, Operation, OperationParameter, Schema, Webhook } from './openapi-types.ts';

/** Version of the API and the SDKs. */
export const VERSION = '1.3.0';

const TEXT = { type: 'string' };

/** Header components by name. */
const HEADERS: Readonly<Record<string, Header>> = {
  'X-Request-Id': { description: 'Identifies this response in support requests.', schema: TEXT },
  'X-RateLimit-Limit': { description: 'Requests a month: an integer, or `unlimited`.', schema: TEXT },
  'X-RateLimit-Remaining': { description: 'Requests left this month: an integer, or `unlimited`.', schema: TEXT },
  'X-RateLimit-Reset': {
    description: 'The Unix second at which the next UTC month begins.',
    schema: { type: 'integer' },
  },
  'Retry-After': { description: 'Seconds to wait before a retry.', schema: { type: 'integer' } },
  'WWW-Authenticate': { description: '`Bearer`', schema: TEXT },
  'Idempotent-Replay': {
    description: 'Sent if the request had an `Idempotency-Key`: whether this repeats the first response.',
    schema: { type: 'string', enum: ['true', 'false'] },
  },
};

const SUMMARY = 'Dynamic QR codes: printed once, with a target that can be changed at any time.';

const DESCRIPTION = `${SUMMARY}

Every request carries \`Authorization: Bearer sk_live_…\`. A key may make 120 requests in any 60 seconds, and as many per
month as its plan allows. \`X-RateLimit-*\` describe the monthly quota.

A body of more than ${MAX_BODY} is a 413 on every endpoint, also where none is expected; a batch may have ${MAX_BATCH_BODY}.

An \`Idempotency-Key\` makes the creation of codes and batches safe to retry for 24 hours. Scans do not use this API: a
printed code resolves even if the API is unavailable.`;

/** Generates the OpenAPI 3.1 document from the endpoints' definitions. */
export function openApiDocument(endpoints: readonly Endpoint[], publicUrl: string): OpenApiDocument {
  const schemas: Record<string, Schema> = { Error: errorSchema };
  const paths: Record<string, Record<string, Operation>> = {};
  for (const endpoint of endpoints) {
    const path = paths[endpoint.path] ?? {};
    path[endpoint.method.toLowerCase()] = operation(endpoint, schemas);
    paths[endpoint.path] = path;
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Signpost',
      version: VERSION,
      summary: SUMMARY,
      description: DESCRIPTION,
      contact: { name: 'Signpost', url: `${publicUrl}/docs` },
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: publicUrl }],
    security: [{ key: [] }],
    tags: Object.entries(SECTIONS).map(([name, description]) => ({ name, description })),
    paths,
    webhooks: webhooks(schemas),
    components: {
      securitySchemes: { key: { type: 'http', scheme: 'bearer', description: 'An API key: `sk_live_…`.' } },
      headers: HEADERS,
      schemas,
    },
  };
}

function operation(endpoint: Endpoint, schemas: Record<string, Schema>): Operation {
  const { id, tag, summary, description, body } = endpoint;
  const parameters: OperationParameter[] = [
    ...(endpoint.path.includes('{id}') ? [idOf(endpoint)] : []),
    ...Object.entries(endpoint.query ?? {}).map(([name, parameter]) => ({ name, in: 'query', ...parameter })),
    ...(endpoint.idempotent ? [IDEMPOTENCY_KEY] : []),
    ...('304' in endpoint.success ? [IF_NONE_MATCH] : []),
  ];
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body && {
      requestBody: {
        required: true,
        content: {
          'application/json': { schema: named(`${id}Request`, body.schema, schemas), example: body.example },
        },
      },
    }),
    responses: { ...successes(endpoint, schemas), ...failures(endpoint) },
  };
}

/** The `{id}` in the path. */
function idOf({ path }: Endpoint): OperationParameter {
  const [description, example] = path.startsWith('/api/v1/batches')
    ? ['The batch, `batch_…`.', batchExample.id]
    : ['The code, `qr_…`.', codeExample.id];
  return { name: 'id', in: 'path', required: true, description, schema: TEXT, example };
}

const IDEMPOTENCY_KEY: OperationParameter = {
  name: 'Idempotency-Key',
  in: 'header',
  description: 'Generated once for each creation and sent with every retry of it. Remembered for 24 hours.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
  example: '0199c0de-7d1e-7a6b-9f3e-2b6d1f0c4a57',
};

const IF_NONE_MATCH: OperationParameter = {
  name: 'If-None-Match',
  in: 'header',
  description: 'The `ETag` of the copy that you have: if it is still current, the response is a 304 without a body.',
  schema: TEXT,
  example: '"9Jq1xVZ0mS4"',
};

function successes(
  { id, success, response, headers = {}, links = [], idempotent }: Endpoint,
  schemas: Record<string, Schema>,
): Operation['responses'] {
  const shared = refer(['X-Request-Id', ...RATE, ...(idempotent ? ['Idempotent-Replay'] : [])]);
  const own = Object.entries(headers).map(([name, description]) => [name, { description, schema: TEXT }]);
  const content =
    'media' in response
      ? response.media
      : { 'application/json': { schema: named(`${id}Response`, response.schema, schemas), example: response.example } };
  const parameters = { id: '$response.body#/data/id' };
  const linked = Object.fromEntries(links.map((operationId) => [operationId, { operationId, parameters }]));
  return Object.fromEntries(
    Object.entries(success).map(([status, description]) => [
      status,
      {
        description,
        headers: { ...shared, ...Object.fromEntries(own) },
        ...(status === '304' ? {} : { content }),
        ...(links.length > 0 ? { links: linked } : {}),
      },
    ]),
  );
}

function failures({ errors, errorDescriptions, idempotent }: Endpoint): Operation['responses'] {
  const descriptions: Readonly<Record<string, string>> = errorDescriptions ?? {};
  const cases = Object.entries(ERROR_EXAMPLES).flatMap(([status, examples]) => {
    const names: readonly string[] = [...(of(errors, status) ?? []), ...(of(EVERYWHERE, status) ?? [])];
    const listed = Object.entries(examples).filter(([name]) => names.includes(name));
    return listed.length > 0 ? [[status, Object.fromEntries(listed)] as const] : [];
  });
  return Object.fromEntries(
    cases.map(([status, examples]) => {
      const headers = ERROR_HEADERS[Number(status) as keyof typeof ERROR_HEADERS];
      const replay = idempotent ? ['Idempotent-Replay'] : [];
      const inFlight = 'key_in_flight' in examples ? ['Retry-After'] : [];
      return [
        status,
        {
          description: descriptions[status] ?? alternatives(Object.values(examples).map(({ summary }) => summary)),
          headers: refer(['X-Request-Id', ...headers, ...inFlight, ...replay]),
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' }, examples } },
        },
      ];
    }),
  );
}

/** The sentences as one: any of them may be the cause. */
function alternatives(sentences: readonly string[]): string {
  return sentences.join(' ').replace(/\. (.)/g, (_, start: string) => `; or ${start.toLowerCase()}`);
}

function of(cases: ErrorCases, status: string): readonly string[] | undefined {
  return (cases as Readonly<Record<string, readonly string[] | undefined>>)[status];
}

/** The events that webhooks deliver. Source: docs/contract.md, "Events". */
function webhooks(schemas: Record<string, Schema>): Readonly<Record<string, { post: Webhook }>> {
  return Object.fromEntries(
    Object.entries<EventDescription>(EVENTS_BY_TYPE).map(([type, { summary, data, example }]) => {
      const name = type.replace(/(?:^|[._])(\w)/g, (_, letter: string) => letter.toUpperCase());
      const event = z.object({
        type: z.literal(type),
        timestamp: z.string().meta({ format: 'date-time', description: 'When it happened.' }),
        data,
      });
      const body = {
        schema: named(`${name}Event`, event, schemas),
        example: { type, timestamp: '2026-11-20T09:30:00.000Z', data: example },
      };
      const post = {
        operationId: `on${name}`,
        summary,
        security: [],
        requestBody: { required: true as const, content: { 'application/json': body } },
        responses: { '2XX': { description: 'The event was received; it is not sent again.' } },
      };
      return [type, { post }];
    }),
  );
}

function refer(headers: readonly string[]): Readonly<Record<string, { $ref: string }>> {
  return Object.fromEntries(headers.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** A reference to the schema, as a component: generators of clients name types after components. */
function named(name: string, schema: z.ZodType, schemas: Record<string, Schema>): Schema {
  const component = name.replace(/^./, (letter) => letter.toUpperCase());
  schemas[component] = jsonSchema(schema, schemas);
  return { $ref: `#/components/schemas/${component}` };
}

/** Converts a schema for OpenAPI 3.1: JSON Schema 2020-12, with named schemas moved to `components`. */
function jsonSchema(schema: z.ZodType, schemas: Record<string, Schema>): Schema {
  const { $schema: _dialect, $defs = {}, ...json } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  const withComponentRefs = (part: unknown): Schema =>
    JSON.parse(JSON.stringify(part).replaceAll('"#/$defs/', '"#/components/schemas/'));
  for (const [name, definition] of Object.entries($defs)) {
    const { id: _name, ...rest } = withComponentRefs(definition);
    schemas[name] = rest;
  }
  return withComponentRefs(json);
}
