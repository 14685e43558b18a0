import { escapeHtml } from '../../http/escape-html.ts';
import type { Content, MediaType, OpenApiDocument, OperationResponse } from '../openapi/openapi-types.ts';
import { callsOf, type Member } from './calls.ts';
import { codeBlocks } from './code-block.ts';
import { type Field, fieldList, fieldsOf } from './fields.ts';
import { anchor, code, inline } from './markdown.ts';
import { prettyJson } from './pretty-json.ts';

const AUTHORIZATION: Field = {
  name: 'Authorization',
  schema: { type: 'string' },
  required: true,
  description: '`Bearer` and the API key.',
  example: 'Bearer sk_live_…',
};

/** The titles of the lists of parameters, by where they are sent. */
const PARAMETERS = { path: 'Path', query: 'Query', header: 'Headers' };

/** An operation: what it takes and returns on the left, calls and a response on the right. */
export function operationSection(member: Member, document: OpenApiDocument, baseUrl: string): string {
  const { method, path, operation } = member;
  const { operationId: id, summary, description, parameters = [], requestBody, responses } = operation;
  const { schemas } = document.components;
  const lists = Object.entries(PARAMETERS).map(([where, title]) => {
    const fields = parameters
      .filter((parameter) => parameter.in === where)
      .map((parameter): Field => ({ ...parameter, required: parameter.required === true }));
    const all = where === 'header' ? [AUTHORIZATION, ...fields] : fields;
    return titled(title, fieldList(all, { schemas, prefix: `${id}.${where}` }));
  });
  const body = json(requestBody?.content);
  const bodyFields = fieldsOf(body?.schema, schemas, body?.example);
  const entries = Object.entries(responses);
  const successes = entries.filter(([status]) => Number(status) < 400);
  const failures = entries.filter(([status]) => Number(status) >= 400);
  const [[status = '', first] = []] = successes;
  return `<section class="operation" aria-labelledby="${id}">
<div class="text">
<h3 id="${id}">${escapeHtml(summary)}${anchor(id)}</h3>
<p class="endpoint"><span class="method ${method.toLowerCase()}">${method}</span> ${code(path)}</p>
<p>${inline(description)}</p>
${lists.join('\n')}
${titled('Body', fieldList(bodyFields, { schemas, prefix: `${id}.body` }))}
${titled('Responses', successes.map(([each, response]) => success(id, each, response, document)).join('\n'))}
${titled('Errors', failures.map(([each, response]) => failure(each, response)).join('\n'))}
</div>
<div class="calls">
${codeBlocks(callsOf(member, baseUrl), summary)}
${response(status, first)}
</div>
</section>`;
}

/** An event: its fields on the left, the request that delivers it on the right. */
export function eventSection(type: string, document: OpenApiDocument): string {
  const { schemas } = document.components;
  const post = document.webhooks[type]?.post;
  const body = json(post?.requestBody.content);
  const fields = fieldsOf(body?.schema, schemas, body?.example);
  return `<section class="operation" aria-labelledby="${type}">
<div class="text">
<h3 id="${type}"><code>${escapeHtml(type)}</code>${anchor(type)}</h3>
<p>${inline(post?.summary ?? '')}</p>
${titled('Body', fieldList(fields, { schemas, prefix: type, inResponse: true }))}
</div>
<div class="calls">
${codeBlocks([{ language: 'json', code: prettyJson(body?.example) }], 'Request body')}
</div>
</section>`;
}

function titled(title: string, html: string): string {
  return html === '' ? '' : `<h4>${title}</h4>\n${html}`;
}

/** A status of success with its headers and the fields of its body. */
function success(id: string, status: string, response: OperationResponse, document: OpenApiDocument): string {
  const { schemas, headers: components } = document.components;
  const headers = Object.entries(response.headers).flatMap(([name, header]): Field[] => {
    const found = '$ref' in header ? components[header.$ref.slice(header.$ref.lastIndexOf('/') + 1)] : header;
    return found ? [{ name, schema: found.schema, required: true, description: found.description }] : [];
  });
  const body = json(response.content);
  const place = { schemas, prefix: `${id}.${status}`, inResponse: true };
  const types = Object.keys(response.content ?? {}).map(code);
  return `<div class="response" id="${id}.${status}">
<p><strong class="status">${status}</strong> ${inline(response.description)}${types.length > 0 ? ` <span class="type">${types.join(' or ')}</span>` : ''}</p>
<details><summary>${headers.length} headers</summary>${fieldList(headers, { ...place, prefix: `${place.prefix}.header` })}</details>
${fieldList(fieldsOf(body?.schema, schemas, body?.example), place)}
</div>`;
}

/** A status of failure: each cause with what to do and the body. */
function failure(status: string, { description, content }: OperationResponse): string {
  const cases = Object.values(json(content)?.examples ?? {}).map(
    ({ summary = '', description: remedy = '', value }) =>
      `<li><p>${inline(summary)} ${inline(remedy)}</p><pre tabindex="0" role="group" aria-label="JSON"><code>${escapeHtml(JSON.stringify(value))}</code></pre></li>`,
  );
  return `<details class="response"><summary><strong class="status">${status}</strong><span>${inline(description)}</span></summary>
<ul class="cases">${cases.join('\n')}</ul></details>`;
}

/** The example of a response. */
function response(status: string, described: OperationResponse | undefined): string {
  const [[type = '', media] = []] = Object.entries(described?.content ?? {}).filter(([, { example }]) => example);
  if (!media) return '';
  const text = type === 'application/json' ? prettyJson(media.example) : String(media.example);
  return codeBlocks([{ language: type === 'application/json' ? 'json' : 'svg', code: text }], `Response ${status}`);
}

function json(content: Content | undefined): MediaType | undefined {
  return content?.['application/json'];
}
