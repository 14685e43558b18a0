import { readFileSync } from 'node:fs';
import { escapeHtml } from '../../http/escape-html.ts';
import type { OpenApiDocument } from '../openapi/openapi-types.ts';
import type { Member } from './calls.ts';
import { guide } from './guide.ts';
import { icon, slug } from './html.ts';
import { anchor, inline } from './markdown.ts';
import { eventSection, operationSection } from './operation.ts';

const read = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8');

/** The style sheet and the script that the page contains, and that its CSP allows by their hashes. */
export const STYLE = read('page.css');
export const SCRIPT = read('page.js');

const ICON = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#0a5f49" stroke-width="2" stroke-linejoin="round"><path d="M12 22.5v-18M12 5.2h6.8l2.2 2.7-2.2 2.6H12zM12 12H5.2L3 14.6l2.2 2.7H12z"/></svg>',
)}`;

/**
 * Renders the guide and the OpenAPI document as one self-contained HTML page, which can be read without its script. It
 * is public, as the contract requires ("Authentication").
 */
export function referencePage(document: OpenApiDocument, baseUrl: string): string {
  const { info, tags, paths, webhooks } = document;
  const members = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Member => ({ method: method.toUpperCase(), path, operation })),
  );
  const groups = tags.map((tag) => ({
    ...tag,
    members: members.filter(({ operation }) => operation.tags.includes(tag.name)),
  }));
  const { html, headings } = guide(baseUrl);
  const title = `${info.title} API reference`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="${escapeHtml(ICON)}">
<style>${STYLE}</style>
<script>${SCRIPT}</script>
</head>
<body>
<a class="skip" href="#main">Skip to the text</a>
<header class="top">
<a class="brand" href="#main">${icon('signpost')}<span>${escapeHtml(info.title)}</span></a>
<button type="button" popovertarget="contents">${icon('menu')}<span>Contents</span></button>
</header>
<nav id="contents" popover aria-label="Contents">
<div class="head">
<a class="brand" href="#main">${icon('signpost')}<span>${escapeHtml(info.title)}</span></a>
<button type="button" class="theme" hidden>${icon('moon')}<span>Dark</span></button>
</div>
<search hidden>
<input id="search" type="search" role="combobox" aria-expanded="false" aria-controls="found" aria-label="Search the reference" placeholder="Search" autocomplete="off" spellcheck="false"><kbd aria-hidden="true">/</kbd>
<ul id="found" role="listbox" aria-label="Found" hidden></ul>
</search>
<h2>Guide</h2>
<ul>${headings
    .filter(({ depth }) => depth === 2)
    .map(({ id, text }) => entry(id, escapeHtml(text)))
    .join('')}</ul>
${groups.map(({ name, members: each }) => `<h2>${escapeHtml(name)}</h2>\n<ul>${each.map(operationEntry).join('')}</ul>`).join('\n')}
<h2>Events</h2>
<ul>${Object.keys(webhooks)
    .map((type) => entry(type, escapeHtml(type)))
    .join('')}</ul>
</nav>
<main id="main">
<h1>${escapeHtml(title)}</h1>
<p class="lead">${inline(info.summary)}</p>
<p class="quiet">Version ${escapeHtml(info.version)}. Base URL <code>${escapeHtml(baseUrl)}</code>. Generators read the OpenAPI 3.1 document at <a href="#getOpenApi"><code>/api/v1/openapi</code></a>.</p>
${html}
${groups.map((group) => `${groupHeading(group.name, group.description)}\n${group.members.map((member) => operationSection(member, document, baseUrl)).join('\n')}`).join('\n')}
${groupHeading('Events', 'What webhooks deliver, to the endpoints that subscribe to it. [Webhooks](#webhooks) says how.')}
${Object.keys(webhooks)
  .map((type) => eventSection(type, document))
  .join('\n')}
</main>
</body>
</html>
`;
}

function operationEntry({ operation }: Member): string {
  return entry(operation.operationId, escapeHtml(operation.summary));
}

function entry(id: string, text: string): string {
  return `<li><a href="#${id}">${text}</a></li>`;
}

function groupHeading(name: string, description: string): string {
  // The guide has sections of the same names.
  const id = `${slug(name)}-reference`;
  return `<div class="group"><h2 id="${id}">${escapeHtml(name)}${anchor(id)}</h2>\n<p>${inline(description)}</p></div>`;
}
