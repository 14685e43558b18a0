import { type DescEnum, type DescField, type DescMessage, fromJson, type JsonValue } from '@bufbuild/protobuf';
import { isFieldError } from '@bufbuild/protobuf/reflect';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';

/** The fields of messages that may contain a name of an enum value or a timestamp, themselves or further down. */
const checkedFields = new WeakMap<DescMessage, readonly DescField[]>();

/**
 * Says what the library misreads in a message's JSON form; undefined if nothing. Along with unknown fields it ignores
 * unknown names of enum values, so a misspelled filter would select everything, and it reads 30 February as 2 March.
 * `json`: a message that the library has read without an error. `path`: the field that contains it, with a dot; empty
 * for a request.
 */
export function jsonProblem(schema: DescMessage, json: JsonValue, path = ''): string | undefined {
  return firstProblem(fieldsOf(schema), json, path, valueProblem);
}

/**
 * Says in which field is what keeps the library from reading a message's JSON form; undefined if it is in none.
 * `error`: the library's. The other arguments are those of `jsonProblem`.
 */
export function typeProblem(schema: DescMessage, json: JsonValue, error: unknown, path = ''): string | undefined {
  const { cause } = error as Error;
  if (isFieldError(cause) && cause.field().parent === schema) return `${path}${cause.field().name}: ${cause.message}.`;
  const inField = firstProblem(schema.fields, json, path, ({ message, enum: values }, value, at) => {
    if (value == null) return undefined;
    if (values) return ['string', 'number'].includes(typeof value) ? undefined : unknownName(values, at);
    if (!message) return undefined;
    const failed = readError(message, value);
    return failed === undefined ? undefined : typeProblem(message, value, failed, `${at}.`);
  });
  return inField ?? (path === '' ? undefined : `${path.slice(0, -1)}: is not a valid ${schema.typeName}.`);
}

function readError(schema: DescMessage, json: JsonValue): unknown {
  try {
    fromJson(schema, json, { ignoreUnknownFields: true });
    return undefined;
  } catch (error) {
    return error;
  }
}

/** The first problem of a value of these fields of a message. `at`: the field that contains the value. */
function firstProblem(
  fields: readonly DescField[],
  json: JsonValue,
  path: string,
  problemOf: (field: DescField, value: JsonValue, at: string) => string | undefined,
): string | undefined {
  if (!(json instanceof Object)) return undefined;
  for (const field of fields) {
    const given: unknown = Reflect.get(json, field.jsonName) ?? Reflect.get(json, field.name);
    const values = Array.isArray(given) ? given : [given];
    for (const [index, value] of values.entries()) {
      const at = `${path}${field.name}${Array.isArray(given) ? `[${index}]` : ''}`;
      const problem = problemOf(field, value, at);
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
