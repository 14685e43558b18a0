import { writeFileSync } from 'node:fs';
import { components, DOCUMENT_PATH, servedDocument } from './document.ts';
import { generateTypeScript } from './typescript.ts';

/** Writes the OpenAPI document and the types of the SDKs that are generated from it: a part of `npm run generate`. */
const document = servedDocument();
writeFileSync(DOCUMENT_PATH, `${JSON.stringify(document, null, 2)}\n`);
await generateTypeScript(components(document));
