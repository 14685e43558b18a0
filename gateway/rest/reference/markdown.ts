import { Marked, type Tokens } from 'marked';
import { escapeHtml } from '../../http/escape-html.ts';
import { codeBlocks, type Snippet } from './code-block.ts';
import { slug } from './html.ts';
import { qrFigure } from './qr-figure.ts';

/** A heading of the guide. */
export interface Heading {
  readonly id: string;
  readonly text: string;
  readonly depth: number;
}

const marked = new Marked({
  renderer: {
    // Neighbours of other languages are one call in several languages: see `rendered`.
    code: ({ lang = '', text }: Tokens.Code) => codeBlocks([{ language: lang, code: text }]),
    codespan: ({ text }) => code(text),
    heading({ depth, text, tokens }) {
      const id = slug(text);
      return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}${anchor(id)}</h${depth}>\n`;
    },
    html: ({ text }) => escapeHtml(text),
    // The guide's only images are those of codes, each a paragraph of its own.
    image: ({ href, text }) => qrFigure(href, text),
    paragraph({ tokens }) {
      const html = this.parser.parseInline(tokens);
      return tokens[0]?.type === 'image' ? html : `<p>${html}</p>\n`;
    },
    table(token) {
      const cells = (row: Tokens.TableCell[], tag: 'td' | 'th') =>
        row.map((cell) => `<${tag}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join('');
      const rows = token.rows.map((row) => `<tr>${cells(row, 'td')}</tr>`).join('\n');
      const head = `<thead><tr>${cells(token.header, 'th')}</tr></thead>`;
      return `<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>${head}<tbody>${rows}</tbody></table></div>\n`;
    },
  },
});

/** The link of a heading to itself. */
export function anchor(id: string): string {
  return `<a class="anchor" href="#${id}" aria-label="Link to this section">#</a>`;
}

/** The longest code that stays on one line, on a phone too. */
const UNBROKEN = 28;

/** Code within text. A long one may break after the characters that separate its parts, and nowhere else. */
export function code(text: string): string {
  if (text.length <= UNBROKEN) return `<code>${escapeHtml(text)}</code>`;
  return `<code class="long">${escapeHtml(text).replace(/(?<=\w[/_?=.,-]|\/\/|&amp;)(?=[\w{$])/g, '<wbr>')}</code>`;
}

/** Renders a description of the OpenAPI document. */
export function inline(text: string): string {
  return marked.parseInline(text, { async: false });
}

/** Renders a page of the guide, and lists its headings. */
export function rendered(markdown: string): { readonly html: string; readonly headings: readonly Heading[] } {
  const tokens = marked.lexer(markdown).filter(({ type }) => type !== 'space');
  const headings: Heading[] = [];
  let html = '';
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at] as Tokens.Generic;
    if (token.type === 'heading') headings.push({ id: slug(token.text), text: token.text, depth: token.depth });
    if (token.type !== 'code') {
      html += marked.parser([token]);
      continue;
    }
    const snippets: Snippet[] = [];
    for (; tokens[at]?.type === 'code' && isCall(tokens[at], snippets); at++) {
      const { lang = '', text } = tokens[at] as Tokens.Code;
      snippets.push({ language: lang, code: text });
    }
    at--;
    html += codeBlocks(snippets);
  }
  return { html, headings };
}

const CALLS = ['sh', 'ts', 'py', 'go'];

/** Whether a block of code begins a group, or belongs to the group that the blocks before it are. */
function isCall(token: unknown, group: readonly Snippet[]): boolean {
  const { lang = '' } = token as Tokens.Code;
  if (group.length === 0) return true;
  const taken = group.map(({ language }) => language);
  return CALLS.includes(lang) && !taken.includes(lang) && taken.every((language) => CALLS.includes(language));
}
