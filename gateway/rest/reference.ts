import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Content, OpenApiDocument, Operation, Schema, Schemas } from './openapi-types.ts';

const STYLE = readFileSync(new URL('reference.css', import.meta.url), 'utf8');

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');

/** Headers of the page: its CSP allows only its own style sheet, and no scripts. */
export const REFERENCE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; base-uri 'none'; frame-ancestors 'none'`,
  'cache-control': 'public, max-age=300',
};

/**
 * Renders the OpenAPI document as one self-contained HTML page. It is public, as the contract requires ("Authentication").
 */
export function referencePage({ info, paths, components }: OpenApiDocument): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
  const tags = [...new Set(operations.flatMap(({ operation }) => operation.tags))];
  const groups = tags.map((tag) => ({
    tag,
    members: operations.filter(({ operation }) => operation.tags.includes(tag)),
  }));
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(info.title)}: API reference</title>
<style>${STYLE}</style>
</head>
<body>
<div class="page">
<nav aria-label="Operations">
${groups.map(({ tag, members }) => `<strong>${escaped(tag)}</strong><ul>${members.map(link).join('')}</ul>`).join('\n')}
</nav>
<main>
<h1>${escaped(info.title)}: API reference</h1>
<p class="quiet">Version ${escaped(info.version)}. The OpenAPI document is at <code>GET /api/v1/openapi</code>, with a key.</p>
${info.description
  .split('\n\n')
  .map((paragraph) => `<p>${prose(paragraph)}</p>`)
  .join('\n')}
${groups
  .map(
    ({ tag, members }) =>
      `<h2>${escaped(tag)}</h2>\n${members.map((member) => section(member, components.schemas)).join('\n')}`,
  )
  .join('\n')}
</main>
</div>
</body>
</html>
`;
}

interface Member {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

function link({ operation }: Member): string {
  return `<li><a href="#${operation.operationId}">${escaped(operation.summary)}</a></li>`;
}

function section({ method, path, operation }: Member, schemas: Schemas): string {
  const { operationId, summary, description, parameters = [], requestBody, responses } = operation;
  const [status = '', success] = Object.entries(responses)[0] ?? [];
  const body = json(requestBody?.content);
  const answer = json(success?.content);
  return `<section aria-labelledby="${operationId}">
<h3 id="${operationId}">${escaped(summary)}</h3>
<p class="endpoint"><code>${method} ${escaped(path)}</code></p>
<p>${prose(description)}</p>
${table(
  'Parameters',
  parameters.map((parameter) => [
    parameter.name,
    `${parameter.in}, ${typeOf(parameter.schema)}`,
    parameter.description,
  ]),
)}
${table('Body', fields(body?.schema, schemas))}
${example('Request body', body?.example)}
${table('Answer', fields(resolve(answer?.schema, schemas)?.properties?.data ?? answer?.schema, schemas))}
${example(`Answer ${status}`, answer?.example)}
${table(
  'Statuses',
  Object.entries(responses).map(([code, response]) => [code, '', response.description]),
)}
</section>`;
}

function json(content: Content | undefined) {
  return content?.['application/json'];
}

type Row = readonly [name: string, type: string, description: string | undefined];

/** The fields of an object, or of the objects in an array. */
function fields(schema: Schema | undefined, schemas: Schemas): Row[] {
  const object = resolve(schema?.items ?? schema, schemas);
  const required = new Set(object?.required);
  return Object.entries(object?.properties ?? {}).map(([name, field]) => {
    const optional = required.has(name) ? '' : ', may be left out';
    return [name, `${typeOf(field)}${optional}`, field.description ?? resolve(field, schemas)?.description];
  });
}

function resolve(schema: Schema | undefined, schemas: Schemas): Schema | undefined {
  return schema?.$ref === undefined ? schema : schemas[nameOf(schema.$ref)];
}

function nameOf(ref: string): string {
  return ref.slice(ref.lastIndexOf('/') + 1);
}

function typeOf({ $ref, type, items, anyOf }: Schema): string {
  if ($ref !== undefined) return nameOf($ref);
  if (anyOf) return anyOf.map(typeOf).join(' or ');
  if (items) return `array of ${typeOf(items)}`;
  return [type ?? 'any'].flat().join(' or ');
}

function table(title: string, rows: readonly Row[]): string {
  if (rows.length === 0) return '';
  const cells = rows.map(
    ([name, type, description = '']) =>
      `<tr><th scope="row"><code>${escaped(name)}</code></th><td class="quiet">${escaped(type)}</td><td>${prose(description)}</td></tr>`,
  );
  return `<h4>${title}</h4>\n<div class="scroll"><table>${cells.join('\n')}</table></div>`;
}

function example(title: string, value: unknown): string {
  if (value === undefined) return '';
  return `<h4>${title}</h4>\n<pre tabindex="0"><code>${escaped(JSON.stringify(value, null, 2))}</code></pre>`;
}

/** Renders text with code in backticks, the only Markdown used in descriptions. */
function prose(text: string): string {
  return escaped(text).replace(/`([^`]+)`/g, '<code>$1</code>');
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => ENTITIES[character] ?? character);
}
