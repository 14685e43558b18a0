import type { Operation } from '../openapi/openapi-types.ts';
import type { Snippet } from './code-block.ts';
import { prettyJson } from './pretty-json.ts';

/** An operation with its place in the document. */
export interface Member {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

/** An operation's example: the id in the path, and the body. */
interface Example {
  readonly id: string;
  readonly body: unknown;
}

/** The calls of the TypeScript SDK. */
const SDK_CALLS: Readonly<Record<string, (example: Example) => string>> = {
  listCodes: () =>
    "for await (const code of signpost.codes.list({ folder: 'Berlin' })) {\n  console.log(code.scan_url);\n}",
  createCode: ({ body }) => `const code = await signpost.codes.create(${literal(body)});`,
  getCode: ({ id }) => `const code = await signpost.codes.get('${id}');`,
  updateCode: ({ id, body }) => `const code = await signpost.codes.update('${id}', ${literal(body)});`,
  deleteCode: ({ id }) => `await signpost.codes.delete('${id}');`,
  getCodeImage: ({ id }) => `const svg = await signpost.codes.image('${id}', { format: 'svg' });`,
  getCodeAnalytics: ({ id }) => `const scans = await signpost.codes.analytics('${id}', { period: 7 });`,
  listBatches: () =>
    'for await (const batch of signpost.batches.list()) {\n  console.log(batch.id, batch.counts.created);\n}',
  createBatch: ({ body }) => `const batch = await signpost.batches.create(${literal(body)});`,
  getBatch: ({ id }) =>
    `const batch = await signpost.batches.get('${id}');\nfor await (const row of signpost.batches.rows('${id}', { status: 'failed' })) {\n  console.log(row.reason);\n}`,
  listFolders: () => 'const folders = await signpost.folders.list();',
  listTags: () => 'const tags = await signpost.tags.list();',
  getOpenApi: () => 'const document = await signpost.openapi();',
};

/** What the curl calls of read operations ask for. */
const QUERIES: Readonly<Record<string, string>> = {
  listCodes: '?folder=Berlin&limit=100',
  getCodeImage: '?format=svg',
  getCodeAnalytics: '?period=7',
  getBatch: '?status=failed',
};

/** The same call by curl and by the SDK, with the operation's example. */
export function callsOf({ method, path, operation }: Member, baseUrl: string): Snippet[] {
  const { operationId, parameters = [], requestBody } = operation;
  const example = {
    id: String(parameters.find(({ name }) => name === 'id')?.example ?? ''),
    body: requestBody?.content['application/json']?.example,
  };
  const url = `${baseUrl}${path.replace('{id}', example.id)}${QUERIES[operationId] ?? ''}`;
  const idempotent = parameters.some(({ name }) => name === 'Idempotency-Key');
  const curl = [
    `curl${method === 'GET' || method === 'POST' ? '' : ` -X ${method}`} ${quoted(url)}`,
    '-H "Authorization: Bearer $KEY"',
    ...(idempotent ? ['-H "Idempotency-Key: $(uuidgen)"'] : []),
    ...(example.body === undefined ? [] : [`-d '${prettyJson(example.body)}'`]),
    ...(operationId === 'getCodeImage' ? ['-o code.svg'] : []),
  ].join(' \\\n  ');
  const call = SDK_CALLS[operationId];
  return [{ language: 'sh', code: curl }, ...(call ? [{ language: 'ts', code: call(example) }] : [])];
}

/** A shell's word. */
function quoted(url: string): string {
  return /[?&]/.test(url) ? `'${url}'` : url;
}

/** A value as TypeScript is formatted: keys without quotation marks, strings in single ones. */
function literal(value: unknown): string {
  return prettyJson(value)
    .replace(/"(\w+)": /g, '$1: ')
    .replace(/"((?:[^"\\]|\\.)*)"/g, (_, text: string) => `'${text.replaceAll("'", "\\'")}'`)
    .replace(/([^,{[\s])$/gm, '$1,')
    .replace(/,$/, '');
}
