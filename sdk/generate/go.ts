import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Schema, Schemas } from '../../gateway/rest/openapi/openapi-types.ts';
import { SDK } from './document.ts';

const GENERATOR = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2';

const CONFIG = {
  package: 'signpost',
  generate: { models: true },
  compatibility: { 'always-prefix-enum-values': true },
  'output-options': {
    'skip-prune': true,
    'name-normalizer': 'ToCamelCaseWithInitialisms',
    'prefer-skip-optional-pointer': true,
    'skip-enum-validate': true,
  },
};

/** The generator's comment on the package, which has its own; what follows must not become one. */
const PACKAGE_COMMENT = /^\/\/ Package signpost .+\n\/\/\n(.+)\n/;

/** Why the Go SDK can't be generated or tested here; undefined if it can. */
export function missingGo(): string | undefined {
  const { stdout } = spawnSync('go', ['env', 'GOVERSION'], { encoding: 'utf8' });
  const minor = Number(/^go1\.(\d+)/.exec(stdout ?? '')?.[1] ?? 0);
  return minor >= 24 ? undefined : 'Go 1.24 is missing (apt-get install golang).';
}

/** Writes the types of the Go SDK. */
export function generateGo(schemas: Schemas): void {
  const folder = mkdtempSync(join(tmpdir(), 'signpost-sdk-go-'));
  const output = resolve(SDK, 'go/types.gen.go');
  const write = (file: string, json: unknown) => writeFileSync(join(folder, file), JSON.stringify(json));
  write('config.json', { ...CONFIG, output });
  const info = { title: 'Signpost', version: '1' };
  write('openapi.json', { openapi: '3.0.3', info, paths: {}, components: { schemas: goSchemas(schemas) } });
  try {
    const args = ['run', GENERATOR, '-config', 'config.json', 'openapi.json'];
    execFileSync('go', args, { cwd: folder, stdio: 'inherit' });
  } finally {
    rmSync(folder, { recursive: true });
  }
  writeFileSync(output, readFileSync(output, 'utf8').replace(PACKAGE_COMMENT, '$1\n\n'));
}

/**
 * The schemas in OpenAPI 3.0, because the generator does not know the null of 3.1. The client has its own envelopes,
 * and a batch without its rows.
 */
function goSchemas(schemas: Schemas): Schemas {
  const kept = Object.entries(schemas).filter(([name]) => !/Response$|^BatchWithRows$/.test(name));
  return Object.fromEntries(kept.map(([name, schema]) => [name, withFields(name, schema)]));
}

function withFields(name: string, schema: Schema): Schema {
  const fields = Object.entries(schema.properties ?? {}).map(([field, each]) => {
    const old = asOpenApi30(each);
    if (name === 'UpdateCodeRequest') return [field, asOptional(old)];
    // In a request that creates, null is absent: the zero value.
    if (/(Request|Input)$/.test(name)) delete old.nullable;
    const isPointer = old.nullable === true || (old.allOf !== undefined && !schema.required?.includes(field));
    return [field, isPointer ? { ...old, 'x-go-type-skip-optional-pointer': false } : old];
  });
  return { ...schema, properties: Object.fromEntries(fields) };
}

/** A field whose absence, null and zero value differ. */
function asOptional({ type, description }: Record<string, unknown>): Schema {
  const goType = { string: 'string', boolean: 'bool', array: '[]string' }[String(type)];
  if (!goType) throw new Error(`no Go type for a field of type ${type}`);
  const extensions = {
    'x-go-type': `Optional[${goType}]`,
    'x-go-type-skip-optional-pointer': true,
    'x-omitzero': true,
  };
  return {
    type: String(type),
    description: String(description),
    ...(type === 'array' ? { items: {} } : {}),
    ...extensions,
  };
}

function asOpenApi30({ const: _const, format, anyOf, type, $ref, ...schema }: Schema): Record<string, unknown> {
  const kept = { ...schema, ...(format === 'date-time' ? { format } : {}) };
  const other = anyOf?.find((each) => each.type !== 'null');
  if (other) return { ...kept, ...asOpenApi30(other), nullable: true };
  if ($ref !== undefined) return { ...kept, allOf: [{ $ref }] };
  if (typeof type === 'string') return { ...kept, type };
  return { ...kept, type: type?.find((each) => each !== 'null'), nullable: true };
}
