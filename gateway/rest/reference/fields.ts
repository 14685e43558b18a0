import { escapeHtml } from '../../http/escape-html.ts';
import type { Schema, Schemas } from '../openapi/openapi-types.ts';
import { code, inline } from './markdown.ts';

/** A field, parameter or header, as the page shows it. */
export interface Field {
  readonly name: string;
  readonly schema: Schema;
  readonly required: boolean;
  /** Overrides the schema's own. */
  readonly description?: string | undefined;
  readonly example?: unknown;
}

/** Where a list of fields is: its components, and the prefix of the fields' ids. */
interface Place {
  readonly schemas: Schemas;
  readonly prefix: string;
  /** Whether Signpost sends the fields: most of them are always present. */
  readonly inResponse?: boolean;
}

/** The fields of an object, with examples from an example of the object. */
export function fieldsOf(schema: Schema | undefined, schemas: Schemas, example?: unknown): Field[] {
  const object = objectIn(schema, schemas);
  const required = new Set(object?.required);
  const values = [example].flat()[0] as Readonly<Record<string, unknown>> | undefined | null;
  return Object.entries(object?.properties ?? {}).map(([name, field]) => ({
    name,
    schema: field,
    required: required.has(name),
    example: values?.[name] ?? field.examples?.[0],
  }));
}

/** A list of fields, each with an id to link to; empty without fields. */
export function fieldList(fields: readonly Field[], place: Place): string {
  if (fields.length === 0) return '';
  return `<ul class="fields">${fields.map((field) => item(field, place)).join('\n')}</ul>`;
}

function item({ name, schema, required, description, example }: Field, place: Place): string {
  const { schemas } = place;
  const id = `${place.prefix}.${name}`;
  const resolved = resolve(schema, schemas);
  const text = description ?? schema.description ?? resolved?.description;
  const nested = fieldsOf(schema, schemas, example);
  const facts = [...rulesOf(schema), ...(nested.length > 0 ? [] : exampleOf(schema, example))];
  return `<li id="${id}"><div class="field"><code class="name">${escapeHtml(name)}</code><span class="type">${typeOf(schema, schemas)}</span>${marked(required, place)}</div>
${text ? `<p>${inline(text)}</p>` : ''}${facts.length > 0 ? `<p class="facts">${facts.join('')}</p>` : ''}
${nested.length > 0 ? `<details><summary>${nested.length} fields<span class="hidden"> of ${escapeHtml(name)}</span></summary>${fieldList(nested, { ...place, prefix: id })}</details>` : ''}</li>`;
}

function marked(required: boolean, { inResponse = false }: Place): string {
  if (required === inResponse) return '';
  return required ? '<span class="required">required</span>' : '<span class="type">not always present</span>';
}

/** The values, ranges and the default of a field. */
function rulesOf(schema: Schema): string[] {
  const { maxLength, minLength = 0, maxItems, minItems = 0, minimum, items } = schema;
  const values = schema.const === undefined ? (schema.enum ?? []) : [schema.const];
  const rules = [
    values.length > 0 &&
      fact(values.length > 1 ? 'One of' : 'Always', values.map((value) => code(json(value))).join(' ')),
    maxLength !== undefined && fact('Length', range(minLength, maxLength, 'characters')),
    maxItems !== undefined && fact('Items', range(minItems, maxItems)),
    items?.maxLength !== undefined && fact('Each', range(items.minLength ?? 0, items.maxLength, 'characters')),
    minimum !== undefined && fact('Minimum', String(minimum)),
    schema.default !== undefined && fact('Default', code(json(schema.default))),
  ];
  return rules.filter((rule) => rule !== false);
}

function exampleOf(schema: Schema, example: unknown): string[] {
  const fixed = schema.const !== undefined;
  return example === undefined || example === null || fixed ? [] : [fact('Example', code(json(example)))];
}

function fact(name: string, value: string): string {
  return `<span class="fact"><span class="label">${name}</span> ${value}</span>`;
}

function range(least: number, most: number, unit = ''): string {
  const from = least > 0 ? `${least.toLocaleString('en')} to` : 'up to';
  return `${from} ${most.toLocaleString('en')} ${unit}`.trim();
}

/** A value as it is written in a request: strings as they are. */
function json(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

const FORMATS: Readonly<Record<string, string>> = {
  uri: 'URL',
  date: 'date',
  'date-time': 'RFC 3339 time',
};

/** The type in words: `array of strings`, `string or null`. */
function typeOf(schema: Schema, schemas: Schemas): string {
  const { $ref, type, items, anyOf, format } = schema;
  if ($ref !== undefined) return typeOf(resolve(schema, schemas) ?? {}, schemas);
  if (anyOf) return anyOf.map((each) => typeOf(each, schemas)).join(' or ');
  const named = [type ?? typeof schema.const].flat().map((each) => {
    if (each === 'array') return `array of ${plural(typeOf(items ?? {}, schemas))}`;
    return each === 'string' && format !== undefined ? `string, ${FORMATS[format] ?? format}` : each;
  });
  return named.join(' or ');
}

function plural(type: string): string {
  return type.replace(/^\w+/, '$&s');
}

/** The object that a schema describes, alone, in an array, or as an alternative to null. */
function objectIn(schema: Schema | undefined, schemas: Schemas): Schema | undefined {
  const found = resolve(schema, schemas);
  if (found?.items) return objectIn(found.items, schemas);
  if (found?.anyOf) return found.anyOf.map((each) => objectIn(each, schemas)).find((each) => each?.properties);
  return found;
}

/** The schema itself, or the component that it refers to. */
function resolve(schema: Schema | undefined, schemas: Schemas): Schema | undefined {
  return schema?.$ref === undefined ? schema : schemas[schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1)];
}
