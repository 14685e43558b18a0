/** The longest line of examples, which have half a page on a screen of 1,200 px. */
const WIDTH = 48;

/** JSON that keeps what fits on one line there: `"tags": ["menu", "summer"]`. */
export function prettyJson(value: unknown, indent = ''): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  const parts = (inner: string) =>
    Object.entries(value).map(([name, each]) => {
      const written = prettyJson(each, inner);
      return Array.isArray(value) ? written : `${JSON.stringify(name)}: ${written}`;
    });
  const space = Array.isArray(value) ? '' : ' ';
  const line = `${open}${space}${parts('').join(', ')}${space}${close}`;
  if (parts('').length === 0) return `${open}${close}`;
  if (!line.includes('\n') && indent !== '' && indent.length + line.length <= WIDTH) return line;
  const inner = `${indent}  `;
  return `${open}\n${parts(inner)
    .map((part) => inner + part)
    .join(',\n')}\n${indent}${close}`;
}
