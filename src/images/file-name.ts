const MAX_CHARACTERS = 60;

/** The file name of an image: the code's name reduced to characters valid in every file system, and its short code. */
export function fileName(name: string | null, shortCode: string, extension: string): string {
  const words = (name ?? '')
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_CHARACTERS)
    .replace(/^-+|-+$/g, '');
  return `${words === '' ? 'qr' : words}-${shortCode}.${extension}`;
}
