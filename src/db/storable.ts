/**
 * A text as Postgres can store it: with a symbol in place of NUL. For rows that fail anyway, whose texts are kept as they
 * were sent.
 */
export function storable(text: string | null | undefined): string | null {
  return text?.replaceAll('\0', '\u2400') ?? null;
}
