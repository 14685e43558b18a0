import { isIP } from 'node:net';
import { z } from 'zod';
import { OperatorError } from './operator-error.ts';
import { configured } from './read-configured-file.ts';

/** An environment variable: its type (with its default), and what it does, unless it is documented elsewhere. */
export interface Variable<Value> {
  readonly type: VariableType<Value>;
  readonly about?: string;
}

/** The type of a variable. */
export interface VariableType<Value> {
  readonly schema: z.ZodType<Value, string | undefined>;
  /** A description for people: `a port`, `one of debug, info`. */
  readonly name: string;
  /** The default as shown in the documentation; empty if there is none. */
  readonly defaultText: string;
}

export type Variables = Readonly<Record<string, Variable<unknown>>>;

/** The values of a list of variables. */
export type Values<Definition extends Variables> = {
  readonly [Name in keyof Definition]: Definition[Name] extends Variable<infer Value> ? Value : never;
};

/** Reads all variables; an empty one counts as unset. Throws an `OperatorError` without values, which may be secret. */
export function readVariables<Definition extends Variables>(
  definition: Definition,
  env: NodeJS.ProcessEnv,
): Values<Definition> {
  const read = Object.entries(definition).map(([name, { type }]) => ({
    name,
    type,
    parsed: type.schema.safeParse(configured(env, name)),
  }));
  const wrong = read.filter(({ parsed }) => !parsed.success);
  if (wrong.length > 0) {
    const sentences = wrong.map(({ name, type }) =>
      configured(env, name) ? `${name} must be ${type.name}.` : `${name} is needed: ${type.name}.`,
    );
    throw new OperatorError(sentences.join(' '));
  }
  return Object.fromEntries(read.map(({ name, parsed }) => [name, parsed.data])) as Values<Definition>;
}

/** The environment with the values of these variables, also of those in files, instead of the names of the files. */
export function withoutFiles(env: NodeJS.ProcessEnv, names: readonly string[]): NodeJS.ProcessEnv {
  const read = names.flatMap((name) => [
    [name, configured(env, name)],
    [`${name}_FILE`, undefined],
  ]);
  return { ...env, ...Object.fromEntries(read) };
}

/** The list as a Markdown table. */
export function variablesTable(definition: Variables): string {
  const rows = Object.entries(definition).map(
    ([name, { type, about = '' }]) =>
      `| \`${name}\` | ${type.name} | ${type.defaultText && `\`${type.defaultText}\``} | ${about} |`,
  );
  return ['| Name | Type | Default | What it does |', '| --- | --- | --- | --- |', ...rows].join('\n');
}

/** A whole number from `min` to `max`. */
export function integer(min: number, max: number, fallback: number): VariableType<number> {
  const schema = z
    .string()
    .regex(/^\d{1,15}$/)
    .transform(Number)
    .pipe(z.number().min(min).max(max))
    .optional()
    .transform((value) => value ?? fallback);
  return { schema, name: `a whole number from ${min} to ${max}`, defaultText: String(fallback) };
}

/** A TCP port; 0 lets the system choose. */
export function port(fallback: number): VariableType<number> {
  return { ...integer(0, 65_535, fallback), name: 'a port' };
}

/** An optional TCP port. */
export const optionalPort: VariableType<number | undefined> = {
  schema: z
    .string()
    .regex(/^\d{1,5}$/)
    .transform(Number)
    .pipe(z.number().max(65_535))
    .optional(),
  name: 'a port',
  defaultText: '',
};

/** Required text. */
export function text(name: string): VariableType<string> {
  return { schema: z.string(), name, defaultText: '' };
}

/** Text with a default. */
export function textOr(name: string, fallback: string): VariableType<string> {
  return {
    schema: z
      .string()
      .optional()
      .transform((value) => value ?? fallback),
    name,
    defaultText: fallback,
  };
}

/** Text that matches a pattern. `name`: a description of it. */
export function textMatching(name: string, pattern: RegExp, fallback: string): VariableType<string> {
  return { schema: z.string().regex(pattern).default(fallback), name, defaultText: fallback };
}

/** Optional text, of any form unless it has to match a pattern. */
export function optionalText(name: string, pattern = /^/): VariableType<string | undefined> {
  return { schema: z.string().regex(pattern).optional(), name, defaultText: '' };
}

const ORIGIN = z
  .string()
  .refine((value) => URL.canParse(value) && /^https?:\/\/[^/\\?#@\s]+\/?$/.test(value))
  .transform((value) => value.replace(/\/$/, ''))
  .optional();

const ORIGIN_NAME = 'an http or https address of host and port only';

/** An http or https address of host and port: without login, path, query and fragment. */
export function origin(fallback: string): VariableType<string> {
  const schema = ORIGIN.transform((value) => value ?? fallback);
  return { schema, name: ORIGIN_NAME, defaultText: fallback };
}

/** The same, with a default that is determined elsewhere; `defaultText` documents it. */
export function optionalOrigin(defaultText: string): VariableType<string | undefined> {
  return { schema: ORIGIN, name: ORIGIN_NAME, defaultText };
}

/** Comma-separated values, each of which must match `pattern`. `name`: a description of one. */
export function list(name: string, pattern: RegExp, fallback: readonly string[]): VariableType<readonly string[]> {
  const schema = z
    .string()
    .transform((value) => value.split(',').map((part) => part.trim()))
    .pipe(z.array(z.string().regex(pattern)))
    .optional()
    .transform((value) => value ?? fallback);
  return { schema, name: `${name}; several are separated by commas`, defaultText: fallback.join(',') };
}

const HOST_AND_PORT = list('host:port', /^[^\s:,]+:\d{1,5}$|^\[[0-9a-fA-F:]+\]:\d{1,5}$/, []);

/** Comma-separated addresses, each `host:port`. */
export function addresses(fallback: readonly string[]): VariableType<readonly string[]> {
  const portOf = (address: string) => Number(address.slice(address.lastIndexOf(':') + 1));
  const schema = HOST_AND_PORT.schema
    .refine((all) => all.every((address) => portOf(address) <= 65_535))
    .transform((all) => (all.length > 0 ? all : fallback));
  return { ...HOST_AND_PORT, schema, defaultText: fallback.join(',') };
}

const NETWORKS = list('an address or a network in CIDR notation', /^[^/]+(\/\d{1,3})?$/, []);

/** Comma-separated addresses and networks. */
export const networks: VariableType<readonly string[]> = {
  ...NETWORKS,
  schema: NETWORKS.schema.refine((all) => all.every(isNetwork)),
};

function isNetwork(network: string): boolean {
  const [address = '', prefix = '0'] = network.split('/');
  return isIP(address) !== 0 && Number(prefix) <= (isIP(address) === 6 ? 128 : 32);
}

/** One of several words. */
export function oneOf<Word extends string>(words: readonly [Word, ...Word[]], fallback: Word): VariableType<Word> {
  const schema = z
    .enum(words)
    .optional()
    .transform((value): Word => (value as Word | undefined) ?? fallback);
  return { schema, name: `one of ${words.join(', ')}`, defaultText: fallback };
}

/** The same, optional. */
export function optionalOneOf<Word extends string>(words: readonly [Word, ...Word[]]): VariableType<Word | undefined> {
  const schema = z.enum(words).optional() as z.ZodType<Word | undefined, string | undefined>;
  return { schema, name: `one of ${words.join(', ')}`, defaultText: '' };
}

/** Secret bytes in base64, at least `bytes` of them. */
export function secret(bytes: number): VariableType<Buffer> {
  const schema = z
    .string()
    // Node skips whatever else it finds. OpenSSL breaks long values into lines.
    .regex(/^[\w+/\s-]+={0,2}\s*$/)
    .transform((value) => Buffer.from(value, 'base64'))
    .refine((value) => value.length >= bytes);
  return { schema, name: `at least ${bytes} random bytes in base64`, defaultText: '' };
}

/** The same, optional. */
export function optionalSecret(bytes: number): VariableType<Buffer | undefined> {
  const { schema, name, defaultText } = secret(bytes);
  return { schema: schema.optional(), name, defaultText };
}

/** `true` or `false`. */
export function flag(fallback: boolean): VariableType<boolean> {
  const schema = z
    .enum(['true', 'false'])
    .optional()
    .transform((value) => (value === undefined ? fallback : value === 'true'));
  return { schema, name: 'true or false', defaultText: String(fallback) };
}

/** How much a process logs. */
export const logLevel = oneOf(['debug', 'info', 'warn', 'error', 'silent'], 'info');
