import { isIP } from 'node:net';
import { OperatorError } from './operator-error.ts';
import { configured } from './read-configured-file.ts';

/** An environment variable: its type (with its default), and what it does, unless it is documented elsewhere. */
export interface Variable<Value> {
  readonly type: VariableType<Value>;
  readonly about?: string;
}

/** In place of a value that does not have the variable's type, or is needed and not set. */
export const INVALID = Symbol('invalid');

/**
 * The type of a variable. zod is not used for it: loading it took 80 to 100 ms of CPU, half of what a command takes to
 * start.
 */
export interface VariableType<Value> {
  /** Reads a variable's text, `undefined` if it is not set. `env`: has the variables that its default depends on. */
  read(text: string | undefined, env: NodeJS.ProcessEnv): Value | typeof INVALID;
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
    value: type.read(configured(env, name), env),
  }));
  const wrong = read.filter(({ value }) => value === INVALID);
  if (wrong.length > 0) {
    const sentences = wrong.map(({ name, type }) =>
      configured(env, name) ? `${name} must be ${type.name}.` : `${name} is needed: ${type.name}.`,
    );
    throw new OperatorError(sentences.join(' '));
  }
  return Object.fromEntries(read.map(({ name, value }) => [name, value])) as Values<Definition>;
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

/** A type whose variables have the value `fallback` when they are not set; with `INVALID` they are needed. */
export function variableType<Value>(
  name: string,
  read: (text: string) => Value | typeof INVALID,
  fallback: Value | typeof INVALID,
  defaultText = '',
): VariableType<Value> {
  return { name, defaultText, read: (text) => (text === undefined ? fallback : read(text)) };
}

/** The same type without the values that a test rejects. */
export function restricted<Value>(
  type: VariableType<Value>,
  accepts: (value: Value) => boolean,
  name = type.name,
): VariableType<Value> {
  const read: VariableType<Value>['read'] = (text, env) => {
    const value = type.read(text, env);
    return value === INVALID || accepts(value) ? value : INVALID;
  };
  return { ...type, name, read };
}

/** A whole number from `min` to `max`; `fallback` need not be among them. */
export function integer<Fallback extends number | undefined>(
  min: number,
  max: number,
  fallback: Fallback,
  defaultText = String(fallback),
): VariableType<number | Fallback> {
  const read = (text: string) => {
    const value = Number(text);
    return /^\d{1,15}$/.test(text) && value >= min && value <= max ? value : INVALID;
  };
  return variableType<number | Fallback>(`a whole number from ${min} to ${max}`, read, fallback, defaultText);
}

/** The default of `PORT`. */
export const GATEWAY_PORT = 8080;

/** A TCP port; 0 lets the system choose. */
export function port(fallback: number): VariableType<number> {
  return { ...integer(0, 65_535, fallback), name: 'a port' };
}

/** An optional TCP port. */
export const optionalPort: VariableType<number | undefined> = {
  ...integer(0, 65_535, undefined, ''),
  name: 'a port',
};

/** Required text. */
export function text(name: string): VariableType<string> {
  return variableType(name, (value) => value, INVALID);
}

/** Text with a default. */
export function textOr(name: string, fallback: string): VariableType<string> {
  return variableType(name, (value) => value, fallback, fallback);
}

/** Text that matches a pattern. `name`: a description of it. */
export function textMatching(name: string, pattern: RegExp, fallback: string): VariableType<string> {
  return variableType(name, matching(pattern), fallback, fallback);
}

/** Optional text, of any form unless it has to match a pattern. */
export function optionalText(name: string, pattern = /^/): VariableType<string | undefined> {
  return variableType(name, matching(pattern), undefined);
}

function matching(pattern: RegExp): (text: string) => string | typeof INVALID {
  return (value) => (pattern.test(value) ? value : INVALID);
}

const ORIGIN_NAME = 'an http or https address of host and port only';

/** The platform's own address: by default this machine, with the port of a gateway. */
export const platformUrl: VariableType<string> = {
  name: ORIGIN_NAME,
  defaultText: 'http://localhost:$PORT',
  read(text, env) {
    if (text !== undefined) return readOrigin(text);
    const gatewayPort = port(GATEWAY_PORT).read(configured(env, 'PORT'), env);
    // A gateway says itself that its `PORT` is invalid.
    return `http://localhost:${gatewayPort === INVALID ? GATEWAY_PORT : gatewayPort}`;
  },
};

/**
 * An http or https address of host and port: without login, path, query and fragment. Read as browsers write it, in
 * lower case and without the scheme's own port. The default is determined elsewhere; `defaultText` documents it.
 */
export function optionalOrigin(defaultText: string): VariableType<string | undefined> {
  return variableType(ORIGIN_NAME, readOrigin, undefined, defaultText);
}

function readOrigin(value: string): string | typeof INVALID {
  return URL.canParse(value) && /^https?:\/\/[^/\\?#@\s]+\/?$/.test(value) ? new URL(value).origin : INVALID;
}

/** Comma-separated origins, each as in an `Origin` header. */
export const origins: VariableType<readonly string[]> = restricted(
  list('an origin as browsers send it (`https://app.example`)', /^https?:/, []),
  (all) => all.every((origin) => readOrigin(origin) === origin),
);

/** Comma-separated values, each of which must match `pattern`. `name`: a description of one. */
export function list(name: string, pattern: RegExp, fallback: readonly string[]): VariableType<readonly string[]> {
  const read = (value: string) => {
    const parts = value.split(',').map((part) => part.trim());
    return parts.every((part) => pattern.test(part)) ? parts : INVALID;
  };
  return variableType(`${name}; several are separated by commas`, read, fallback, fallback.join(','));
}

/** Comma-separated addresses, each `host:port`. */
export function addresses(fallback: readonly string[]): VariableType<readonly string[]> {
  return withPorts(list('host:port', /^[^\s:,]+:\d{1,5}$|^\[[0-9a-fA-F:]+\]:\d{1,5}$/, fallback));
}

/** Comma-separated addresses of Kafka's brokers, by default none. kafkajs can't read IPv6 addresses. */
export const brokers: VariableType<readonly string[]> = withPorts(
  list('host:port with a name or an IPv4 address', /^[^\s:,]+:\d{1,5}$/, []),
);

function withPorts(type: VariableType<readonly string[]>): VariableType<readonly string[]> {
  const portOf = (address: string) => Number(address.slice(address.lastIndexOf(':') + 1));
  return restricted(type, (all) => all.every((address) => portOf(address) <= 65_535));
}

/** Comma-separated addresses and networks. */
export const networks: VariableType<readonly string[]> = restricted(
  list('an address or a network in CIDR notation', /^[^/]+(\/\d{1,3})?$/, []),
  (all) => all.every(isNetwork),
);

function isNetwork(network: string): boolean {
  const [address = '', prefix = '0'] = network.split('/');
  return isIP(address) !== 0 && Number(prefix) <= (isIP(address) === 6 ? 128 : 32);
}

/** One of several words. */
export function oneOf<Word extends string>(words: readonly [Word, ...Word[]], fallback: Word): VariableType<Word> {
  return variableType(`one of ${words.join(', ')}`, readWord(words), fallback, fallback);
}

/** The same, optional. */
export function optionalOneOf<Word extends string>(words: readonly [Word, ...Word[]]): VariableType<Word | undefined> {
  return variableType(`one of ${words.join(', ')}`, readWord(words), undefined);
}

function readWord<Word extends string>(words: readonly Word[]): (text: string) => Word | typeof INVALID {
  return (value) => words.find((word) => word === value) ?? INVALID;
}

/** Secret bytes in base64, at least `bytes` of them. */
export function secret(bytes: number): VariableType<Buffer> {
  return variableType(secretName(bytes), readSecret(bytes), INVALID);
}

/** The same, optional. */
export function optionalSecret(bytes: number): VariableType<Buffer | undefined> {
  return variableType(secretName(bytes), readSecret(bytes), undefined);
}

function secretName(bytes: number): string {
  return `at least ${bytes} random bytes in base64`;
}

function readSecret(bytes: number): (text: string) => Buffer | typeof INVALID {
  return (value) => {
    const decoded = Buffer.from(value, 'base64');
    // Node skips whatever else it finds. OpenSSL breaks long values into lines.
    return /^[\w+/\s-]+={0,2}\s*$/.test(value) && decoded.length >= bytes ? decoded : INVALID;
  };
}

/** `true` or `false`. */
export function flag(fallback: boolean): VariableType<boolean> {
  const read = (value: string) => (value === 'true' ? true : value === 'false' ? false : INVALID);
  return variableType('true or false', read, fallback, String(fallback));
}

/** How much a process logs. */
export const logLevel = oneOf(['debug', 'info', 'warn', 'error', 'silent'], 'info');
