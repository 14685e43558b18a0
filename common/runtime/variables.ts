import { z } from 'zod';
import { OperatorError } from './operator-error.ts';

/** A variable of the environment: what it must be (with its default), and what it does. */
export interface Variable<Value> {
  readonly type: Kind<Value>;
  readonly about: string;
}

/** What a variable must be. */
export interface Kind<Value> {
  readonly schema: z.ZodType<Value, string | undefined>;
  /** For people: `a port`, `one of debug, info`. */
  readonly name: string;
  /** As it stands in the table; empty when there is none. */
  readonly standard: string;
}

export type Variables = Readonly<Record<string, Variable<unknown>>>;

/** The values of a list of variables. */
export type Values<Definition extends Variables> = {
  readonly [Name in keyof Definition]: Definition[Name] extends Variable<infer Value> ? Value : never;
};

/** Reads every variable; an empty one counts as unset. Throws `OperatorError`. Never repeats a value: it may be secret. */
export function readVariables<Definition extends Variables>(
  definition: Definition,
  env: NodeJS.ProcessEnv,
): Values<Definition> {
  const read = Object.entries(definition).map(([name, { type }]) => ({
    name,
    type,
    parsed: type.schema.safeParse(env[name] || undefined),
  }));
  const wrong = read.filter(({ parsed }) => !parsed.success);
  if (wrong.length > 0) {
    const sentences = wrong.map(({ name, type }) =>
      env[name] ? `${name} must be ${type.name}.` : `${name} is needed: ${type.name}.`,
    );
    throw new OperatorError(sentences.join(' '));
  }
  return Object.fromEntries(read.map(({ name, parsed }) => [name, parsed.data])) as Values<Definition>;
}

/** The list as a Markdown table. */
export function variablesTable(definition: Variables): string {
  const rows = Object.entries(definition).map(
    ([name, { type, about }]) =>
      `| \`${name}\` | ${type.name} | ${type.standard && `\`${type.standard}\``} | ${about} |`,
  );
  return ['| Name | Type | Default | What it does |', '| --- | --- | --- | --- |', ...rows].join('\n');
}

/** A whole number from `least` to `most`. */
export function integer(least: number, most: number, standard: number): Kind<number> {
  const schema = z
    .string()
    .regex(/^\d{1,15}$/)
    .transform(Number)
    .pipe(z.number().min(least).max(most))
    .optional()
    .transform((value) => value ?? standard);
  return { schema, name: `a whole number from ${least} to ${most}`, standard: String(standard) };
}

/** A TCP port; 0 lets the system choose. */
export function port(standard: number): Kind<number> {
  return { ...integer(0, 65_535, standard), name: 'a port' };
}

/** Text that has to be there. */
export function text(name: string): Kind<string> {
  return { schema: z.string(), name, standard: '' };
}

/** Text with a default. */
export function textOr(name: string, standard: string): Kind<string> {
  return {
    schema: z
      .string()
      .optional()
      .transform((value) => value ?? standard),
    name,
    standard,
  };
}

/** Text that may be missing. */
export function optionalText(name: string): Kind<string | undefined> {
  return { schema: z.string().optional(), name, standard: '' };
}

const ORIGIN = z
  .string()
  .refine((value) => URL.canParse(value) && /^https?:\/\/[^/]+\/?$/.test(value))
  .transform((value) => value.replace(/\/$/, ''))
  .optional();

/** An http or https address without a path. */
export function origin(standard: string): Kind<string> {
  const schema = ORIGIN.transform((value) => value ?? standard);
  return { schema, name: 'an http or https address without a path', standard };
}

/** The same, whose default is worked out elsewhere; `standard` is what the table says of it. */
export function optionalOrigin(standard: string): Kind<string | undefined> {
  return { schema: ORIGIN, name: 'an http or https address without a path', standard };
}

/** Values separated by commas, each of which must fit. */
export function list(name: string, fits: RegExp, standard: readonly string[]): Kind<readonly string[]> {
  const schema = z
    .string()
    .transform((value) => value.split(',').map((part) => part.trim()))
    .pipe(z.array(z.string().regex(fits)))
    .optional()
    .transform((value) => value ?? standard);
  return { schema, name: `${name}, separated by commas`, standard: standard.join(',') };
}

/** One of some words. */
export function oneOf<Word extends string>(words: readonly [Word, ...Word[]], standard: Word): Kind<Word> {
  const schema = z
    .enum(words)
    .optional()
    .transform((value): Word => (value as Word | undefined) ?? standard);
  return { schema, name: `one of ${words.join(', ')}`, standard };
}

/** The same, which may be missing. */
export function optionalOneOf<Word extends string>(words: readonly [Word, ...Word[]]): Kind<Word | undefined> {
  const schema = z.enum(words).optional() as z.ZodType<Word | undefined, string | undefined>;
  return { schema, name: `one of ${words.join(', ')}`, standard: '' };
}

/** Secret bytes in base64, at least `bytes` of them. */
export function secret(bytes: number): Kind<Buffer> {
  const schema = z
    .string()
    .transform((value) => Buffer.from(value, 'base64'))
    .refine((value) => value.length >= bytes);
  return { schema, name: `at least ${bytes} random bytes in base64`, standard: '' };
}

/** The same, which may be missing. */
export function optionalSecret(bytes: number): Kind<Buffer | undefined> {
  const { schema, name, standard } = secret(bytes);
  return { schema: schema.optional(), name, standard };
}

/** `true` or `false`. */
export function flag(standard: boolean): Kind<boolean> {
  const schema = z
    .enum(['true', 'false'])
    .optional()
    .transform((value) => (value === undefined ? standard : value === 'true'));
  return { schema, name: 'true or false', standard: String(standard) };
}

/** How much a process logs. */
export const logLevel = oneOf(['debug', 'info', 'warn', 'error', 'silent'], 'info');

/** `host:port`. */
export const HOST_AND_PORT = /^[^\s:,]+:\d{1,5}$|^\[[0-9a-fA-F:]+\]:\d{1,5}$/;
