const MOST_CHARACTERS = 60;

/** A name to save an image under: what the code is called, as far as every file system takes it, and its short code. */
export function fileName(name: string | null, shortCode: string, ending: string): string {
  const words = (name ?? '')
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, MOST_CHARACTERS)
    .replace(/^-+|-+$/g, '');
  return `${words === '' ? 'qr' : words}-${shortCode}.${ending}`;
}
