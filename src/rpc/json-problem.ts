import type { DescEnum, DescField, DescMessage, JsonValue } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';

/** The fields of messages that may contain a name of an enum value or a timestamp, themselves or further down. */
const checkedFields = new WeakMap<DescMessage, readonly DescField[]>();

/**
 * Says what the library misreads in a message's JSON form; undefined if nothing. Along with unknown fields it ignores
 * unknown names of enum values, so a misspelled filter would select everything, and it reads 30 February as 2 March.
 * `json`: a message that the library has read without an error. `path`: the field that contains it, with a dot; empty for
 * a request.
 */
export function jsonProblem(schema: DescMessage, json: JsonValue, path = ''): string | undefined {
  if (!(json instanceof Object)) return undefined;
  for (const field of fieldsOf(schema)) {
    const given: unknown = Reflect.get(json, field.jsonName) ?? Reflect.get(json, field.name);
    const values = Array.isArray(given) ? given : [given];
    for (const [index, value] of values.entries()) {
      const at = `${path}${field.name}${Array.isArray(given) ? `[${index}]` : ''}`;
      const problem = valueProblem(field, value, at);
      if (problem !== undefined) return problem;
    }
  }
  return undefined;
}

function valueProblem(field: DescField, value: JsonValue, at: string): string | undefined {
  if (field.enum)
    return typeof value !== 'string' || isName(field.enum, value) ? undefined : unknownName(field.enum, at);
  if (field.message !== TimestampSchema) return field.message && jsonProblem(field.message, value, `${at}.`);
  return typeof value !== 'string' || exists(value) ? undefined : `${at}: there is no such date and time.`;
}

function isName({ values }: DescEnum, name: string): boolean {
  return values.some((value) => value.name === name);
}

function unknownName({ values }: DescEnum, at: string): string {
  const names = values.filter(({ number }) => number !== 0).map(({ name }) => name);
  return `${at}: must be one of ${names.join(', ')}.`;
}

/** Whether a date and time of RFC 3339 is in the calendar: the library's check of its form allows it to roll over. */
function exists(text: string): boolean {
  const local = text.slice(0, 'YYYY-MM-DDThh:mm:ss'.length);
  return new Date(`${local}Z`).toISOString().startsWith(local);
}

function fieldsOf(schema: DescMessage): readonly DescField[] {
  const known = checkedFields.get(schema);
  if (known) return known;
  // No request contains itself, or a map of messages.
  const fields = schema.fields.filter(
    ({ enum: values, message }) => values || message === TimestampSchema || (message && fieldsOf(message).length > 0),
  );
  checkedFields.set(schema, fields);
  return fields;
}
