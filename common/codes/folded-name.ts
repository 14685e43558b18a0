/**
 * The name of a folder or tag as the core compares it: two names are of the same one if these are equal. Postgres does
 * so with `casefold`, in `src/taxonomy/entities.ts`. `name`: as typed.
 */
export function foldedName(name: string): string {
  // Lower case turns `ẞ` into `ß`, and upper case that into `SS`. The upper case of the Turkish `ı` is that of `i`,
  // too, but these are different letters.
  const parts = name.trim().normalize('NFC').split('ı');
  return parts
    .map((part) => part.toLowerCase().toUpperCase())
    .join('ı')
    .normalize('NFC');
}
