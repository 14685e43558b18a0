import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { compile } from 'json-schema-to-typescript';
import type { Schemas } from '../../gateway/rest/openapi/openapi-types.ts';
import { SDK } from './document.ts';

/** Writes the types of the TypeScript SDK. */
export async function generateTypeScript(schemas: Schemas): Promise<void> {
  const $defs = JSON.parse(JSON.stringify(schemas).replaceAll('"#/components/schemas/', '"#/$defs/'));
  const types = await compile({ $defs, type: 'object' }, 'Components', {
    unreachableDefinitions: true,
    additionalProperties: false,
    bannerComment: '// Generated from the OpenAPI document by `npm run generate`. Do not edit.',
    style: { singleQuote: true, printWidth: 120 },
  });
  const own = types
    .replace('export interface Components {}\n', '')
    // The generator says of every type which definition it is; the name says it already.
    .replaceAll(
      /( \*\n)? \* This interface was referenced by `Components`'s JSON-Schema\n \* via the `definition` "\w+"\.\n/g,
      '',
    )
    .replaceAll('/**\n */\n', '');
  writeFileSync(resolve(SDK, 'typescript/src/types.gen.ts'), own);
}
