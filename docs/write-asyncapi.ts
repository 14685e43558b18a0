import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { asyncapiYaml } from './asyncapi.ts';

/** Writes the AsyncAPI document of the topics: a part of `npm run generate`. */
writeFileSync(resolve(import.meta.dirname, 'asyncapi.yaml'), asyncapiYaml());
