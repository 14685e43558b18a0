/** Red, green and blue, 0–255 each. */
export type Colour = readonly [red: number, green: number, blue: number];

/** Parses `#rgb` or `#rrggbb`. */
export function parseColour(text: string): Colour {
  const digits = /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(text)?.[1];
  if (digits === undefined) throw new TypeError(`not a colour: ${text}`);
  const full = digits.length === 3 ? [...digits].map((digit) => digit + digit).join('') : digits;
  const channel = (at: number) => Number.parseInt(full.slice(at, at + 2), 16);
  return [channel(0), channel(2), channel(4)];
}
