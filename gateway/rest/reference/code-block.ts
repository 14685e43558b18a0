import { escapeHtml } from '../../http/escape-html.ts';
import { icon } from './html.ts';

/** A piece of code with its language, by the names of Markdown's info strings. */
export interface Snippet {
  readonly language: string;
  readonly code: string;
}

/** The names of languages in tabs and above blocks. */
const LABELS: Readonly<Record<string, string>> = {
  console: 'Shell',
  go: 'Go',
  http: 'HTTP',
  json: 'JSON',
  py: 'Python',
  sh: 'curl',
  svg: 'SVG',
  ts: 'TypeScript',
};

const STRING = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`/.source;

/** What is coloured, by language: comments, strings, and words. Everything else stays plain. */
const SYNTAX: Readonly<Record<string, RegExp>> = {
  json: grammar('(?!)', '"(?:[^"\\\\]|\\\\.)*"(?=\\s*:)', 'true|false|null'),
  sh: grammar('(?<=^|\\s)#.*$', STRING, 'curl|export|signpost'),
  console: grammar('(?<=^|\\s)#.*$', STRING, 'curl|export|signpost'),
  ts: grammar(
    '//.*$|/\\*.*?\\*/',
    STRING,
    'async|await|catch|const|else|for|function|if|import|from|of|new|return|throw|try',
  ),
  py: grammar('#.*$', STRING, 'and|class|def|except|for|from|if|import|in|is|not|or|raise|return|self|try|with'),
  go: grammar('//.*$', STRING, 'defer|else|for|func|if|import|nil|package|range|return|string|struct|type|var'),
};

function grammar(comment: string, text: string, words: string): RegExp {
  return new RegExp(`(?<c>${comment})|(?<s>${text})|(?<k>\\b(?:${words})\\b)`, 'gm');
}

let groups = 0;

/** One block with a button to copy it, or several of the same meaning in tabs, which work without a script. */
export function codeBlocks(snippets: readonly Snippet[], title = ''): string {
  const [only] = snippets;
  if (!only) return '';
  if (snippets.length === 1) {
    const label = title || (LABELS[only.language] ?? only.language);
    return `<div class="code"><div class="bar"><span>${escapeHtml(label)}</span>${COPY}</div>${block(only)}</div>`;
  }
  const group = `tabs${++groups}`;
  const tabs = snippets.map(({ language }, index) => {
    const id = `${group}-${language}`;
    const checked = index === 0 ? ' checked' : '';
    return `<input type="radio" name="${group}" id="${id}" data-language="${language}"${checked}><label for="${id}">${LABELS[language] ?? language}</label>`;
  });
  const name = escapeHtml(title || 'Language');
  return `<div class="code tabs" role="group" aria-label="${name}"><div class="bar">${tabs.join('')}${COPY}</div>${snippets.map(block).join('')}</div>`;
}

/** Hidden until the script has made it work. */
const COPY = `<button type="button" class="copy" hidden>${icon('copy')}<span>Copy</span></button>`;

function block({ language, code }: Snippet): string {
  const label = `${LABELS[language] ?? language} code`;
  return `<pre tabindex="0" role="group" aria-label="${label}" data-language="${language}"><code>${coloured(code, language)}</code></pre>`;
}

function coloured(code: string, language: string): string {
  const syntax = SYNTAX[language];
  if (!syntax) return escapeHtml(code);
  let html = '';
  let end = 0;
  for (const { 0: found, index, groups: kinds = {} } of code.matchAll(syntax)) {
    const kind = Object.keys(kinds).find((name) => kinds[name] !== undefined);
    html += `${escapeHtml(code.slice(end, index))}<span class="${kind}">${escapeHtml(found)}</span>`;
    end = index + found.length;
  }
  return html + escapeHtml(code.slice(end));
}
