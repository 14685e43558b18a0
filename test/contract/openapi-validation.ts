import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { OpenApiDocument, Operation, Schema } from '../../gateway/rest/openapi/openapi-types.ts';

/** An operation of the document with its usual name: `GET /api/v1/tags`. */
export interface NamedOperation {
  readonly name: string;
  readonly method: string;
  /** The path template, with `{id}`. */
  readonly path: string;
  readonly operation: Operation;
}

/** A request and its answer. */
export interface Exchange {
  readonly method: string;
  /** Path with query. */
  readonly path: string;
  readonly withKey: boolean;
  readonly status: number;
  readonly headers: Headers;
  /** Parsed when it is JSON. */
  readonly body: unknown;
}

/** Every operation that the document describes. */
export function operationsOf(document: OpenApiDocument): NamedOperation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([lower, operation]) => {
      const method = lower.toUpperCase();
      return { name: `${method} ${path}`, method, path, operation };
    }),
  );
}

/** Validates against the document's components; fields that a schema does not name are errors. */
export function strictly(document: OpenApiDocument, schema: Schema): ValidateFunction {
  const strict = JSON.parse(
    JSON.stringify({ ...schema, components: document.components }, (_key, value) =>
      value?.type === 'object' && value.properties ? { additionalProperties: false, ...value } : value,
    ),
  );
  return new Ajv2020({ strict: false, allErrors: true, validateFormats: false }).compile(strict);
}

/** Documented headers that are optional: they depend on the request or on the limit reached. */
const SOMETIMES = ['Idempotent-Replay', 'Retry-After'];

/**
 * Returns a function that throws when an answer of an operation differs from the document: an undocumented status, a
 * missing header, a body of another type or shape.
 */
export function describedBy(document: OpenApiDocument): (exchange: Exchange) => void {
  const operations = operationsOf(document).map((named) => ({
    ...named,
    pattern: new RegExp(`^${named.path.replaceAll('{id}', '[^/]+')}$`),
  }));
  const validators = new Map<string, ValidateFunction>();

  function problemOf({ method, path, withKey, status, headers, body }: Exchange): string | undefined {
    const [plain = ''] = path.split('?', 1);
    const asked = method === 'HEAD' ? 'GET' : method;
    const found = operations.find((each) => each.method === asked && each.pattern.test(plain));
    // A path with invalid percent-encoding has no operation either.
    if (!found || !isEncoded(plain)) return undefined;
    const described = found.operation.responses[status];
    if (!described) return `${found.name} does not list ${status}`;
    const missing = Object.keys(described.headers).find((name) => !SOMETIMES.includes(name) && !headers.has(name));
    if (missing !== undefined) return `${found.name} ${status} came without ${missing}`;
    if (headers.has('idempotent-replay') && !(withKey && found.name.startsWith('POST '))) {
      return `${found.name} reported a replay without a key`;
    }
    if (status === 503 && !headers.has('retry-after')) return `${found.name} 503 came without Retry-After`;
    if (method === 'HEAD' || !described.content) return body === '' ? undefined : `${found.name} ${status} had a body`;
    const type = headers.get('content-type')?.split(';')[0] ?? '';
    const content = described.content[type];
    if (!content) return `${found.name} ${status} was ${type}`;
    if (!content.schema) return undefined;
    const key = `${found.name} ${status}`;
    const validate = validators.get(key) ?? strictly(document, content.schema);
    validators.set(key, validate);
    return validate(body) ? undefined : `${key}: ${JSON.stringify(validate.errors)} in ${JSON.stringify(body)}`;
  }

  return (exchange) => {
    const problem = problemOf(exchange);
    if (problem !== undefined) throw new Error(`not as the OpenAPI document describes it: ${problem}`);
  };
}

function isEncoded(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}
