import { resolve } from 'node:path';
import { describedEndpoints } from '../../gateway/rest/endpoints.ts';
import type { OpenApiDocument, Schema, Schemas } from '../../gateway/rest/openapi/openapi-types.ts';

export const SDK = resolve(import.meta.dirname, '..');

/** The path of the document that the SDKs are generated from. */
export const DOCUMENT_PATH = resolve(SDK, 'openapi.json');

/** The document that a Signpost at this address serves. Describing the operations calls no core. */
export function servedDocument(): OpenApiDocument {
  const never = () => Promise.reject(new Error('Nothing is called.'));
  const core = {} as Parameters<typeof describedEndpoints>[0]['core'];
  return describedEndpoints({ core, publicUrl: 'https://signpost.example.com', onRoute: never }).document;
}

/**
 * Rules that only the server checks. Generated types must not: a client that checks them too refuses what a later
 * server accepts.
 */
const RULES = [
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'minProperties',
  'propertyNames',
];

/** The components of the document without `RULES`, under names that clash with nothing in the languages. */
export function components(document: OpenApiDocument): Schemas {
  const isRule = (key: string, value: unknown) => RULES.includes(key) || (key === 'format' && value === 'uri');
  const json = JSON.stringify(document.components.schemas, (key, value) => (isRule(key, value) ? undefined : value));
  const { Error: error, ...schemas }: Record<string, Schema> = JSON.parse(json);
  return { ...schemas, ErrorBody: error ?? {} };
}
