import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Schemas } from '../../gateway/rest/openapi/openapi-types.ts';
import { SDK } from './document.ts';
import { pythonProgram } from './python-environment.ts';

const OPTIONS = [
  ['--input-file-type', 'openapi'],
  ['--target-python-version', '3.10'],
  ['--enum-field-as-literal', 'all'],
  ['--formatters', 'builtin'],
  ['--custom-file-header', '# Generated from the OpenAPI document by `npm run generate:sdk`. Do not edit.'],
  '--use-standard-collections',
  '--use-union-operator',
  '--use-schema-description',
  '--use-field-description',
  '--use-attribute-docstrings',
  '--use-double-quotes',
].flat();

const MODELS = [
  '--output-model-type',
  'pydantic_v2.BaseModel',
  '--base-class',
  'signpost._model.Model',
  '--snake-case-field',
];

/**
 * Writes the types of the Python SDK: models of responses, and dictionaries for requests, in which absent is not null.
 */
export function generatePython(schemas: Schemas): void {
  const folder = mkdtempSync(join(tmpdir(), 'signpost-sdk-python-'));
  const write = (file: string, part: Schemas, options: readonly string[]) => {
    const input = join(folder, 'openapi.json');
    const info = { title: 'Signpost', version: '1' };
    writeFileSync(input, JSON.stringify({ openapi: '3.1.0', info, paths: {}, components: { schemas: part } }));
    const output = join(SDK, 'python/signpost', file);
    const args = ['--input', input, '--output', output, ...OPTIONS, ...options];
    execFileSync(pythonProgram(join(SDK, 'python'), 'datamodel-codegen'), args, {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
  };
  const isRequest = (name: string) => /(Request|Input)$/.test(name);
  // The client takes responses out of their envelopes.
  const isEnvelope = (name: string) => name.endsWith('Response');
  try {
    write(
      'models.py',
      only(schemas, (name) => !isRequest(name) && !isEnvelope(name)),
      MODELS,
    );
    write('params.py', only(schemas, isRequest), ['--output-model-type', 'typing.TypedDict']);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function only(schemas: Schemas, included: (name: string) => boolean): Schemas {
  return Object.fromEntries(Object.entries(schemas).filter(([name]) => included(name)));
}
