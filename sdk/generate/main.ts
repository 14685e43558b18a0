import { writeFileSync } from 'node:fs';
import { components, DOCUMENT_PATH, servedDocument } from './document.ts';
import { generateGo } from './go.ts';
import { generatePython } from './python.ts';
import { generateTypeScript } from './typescript.ts';

/**
 * Writes the OpenAPI document and the types of the SDKs that are generated from it. `npm run generate` writes those of
 * TypeScript, which need only npm packages; `npm run generate:sdk` writes all, which needs Python and Go.
 */
const document = servedDocument();
const schemas = components(document);
writeFileSync(DOCUMENT_PATH, `${JSON.stringify(document, null, 2)}\n`);
await generateTypeScript(schemas);
if (process.argv.includes('--all')) {
  generatePython(schemas);
  generateGo(schemas);
}
