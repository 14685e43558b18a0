import { z } from 'zod';
import { type Endpoint, TAGS } from './endpoint.ts';
import { ERRORS, EVERYWHERE, errorSchema, RATE } from './openapi-errors.ts';
import type { Json, OpenApiDocument, Operation, OperationParameter, Schema } from './openapi-types.ts';

/** The version of the API, from the contract. */
const VERSION = '1.3.0';

const TEXT = { type: 'string' };

/** Header components by name. */
const HEADERS: Readonly<Record<string, Json>> = {
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

const DESCRIPTION = `Dynamic QR codes: printed once, redirected for ever.

Every request carries \`Authorization: Bearer sk_live_…\`. A key may make 120 requests in any 60 seconds, and as many per
month as its plan allows. \`X-RateLimit-*\` describe the monthly quota.

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
      description: DESCRIPTION,
      contact: { name: 'Signpost', url: `${publicUrl}/docs` },
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: publicUrl }],
    security: [{ key: [] }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
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
    ...(endpoint.path.includes('{id}') ? [ID] : []),
    ...Object.entries(endpoint.query ?? {}).map(([name, parameter]) => ({ name, in: 'query', ...parameter })),
    ...(endpoint.idempotent ? [IDEMPOTENCY_KEY] : []),
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

const ID: OperationParameter = { name: 'id', in: 'path', required: true, schema: TEXT };

const IDEMPOTENCY_KEY: OperationParameter = {
  name: 'Idempotency-Key',
  in: 'header',
  description: 'Generated once for each creation and sent with every retry of it. Remembered for 24 hours.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
};

function successes(
  { id, success, answer, headers = {}, links = [], idempotent }: Endpoint,
  schemas: Record<string, Schema>,
): Operation['responses'] {
  const shared = refer(['X-Request-Id', ...RATE, ...(idempotent ? ['Idempotent-Replay'] : [])]);
  const own = Object.entries(headers).map(([name, description]) => [name, { description, schema: TEXT }]);
  const content =
    'media' in answer
      ? answer.media
      : { 'application/json': { schema: named(`${id}Response`, answer.schema, schemas), example: answer.example } };
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

function failures({ errors, idempotent }: Endpoint): Operation['responses'] {
  const own: Record<string, string> = errors;
  const statuses = new Set([...Object.keys(own).map(Number), ...EVERYWHERE]);
  return Object.fromEntries(
    [...statuses].map((status) => {
      const { description = '', example, headers = [] } = ERRORS[status] ?? {};
      const replay = idempotent && [400, 403, 413].includes(status) ? ['Idempotent-Replay'] : [];
      return [
        status,
        {
          description: own[status] ?? description,
          headers: refer(['X-Request-Id', ...headers, ...replay]),
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' }, example } },
        },
      ];
    }),
  );
}

function refer(headers: readonly string[]): Json {
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
