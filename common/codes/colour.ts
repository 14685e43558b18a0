/** Red, green and blue, 0–255 each. */
export type Colour = readonly [red: number, green: number, blue: number];

/** `#rgb` or `#rrggbb`, with its digits. */
export const COLOUR = /^#([0-9a-f]{3}|[0-9a-f]{6})$/i;

/** Parses `#rgb` or `#rrggbb`. Throws a `TypeError` for anything else. */
export function parseColour(text: string): Colour {
  const digits = COLOUR.exec(text)?.[1];
  if (digits === undefined) throw new TypeError(`not a colour: ${text}`);
  const full = digits.length === 3 ? [...digits].map((digit) => digit + digit).join('') : digits;
  const channel = (at: number) => Number.parseInt(full.slice(at, at + 2), 16);
  return [channel(0), channel(2), channel(4)];
}

/** Relative luminance, 0–1 (WCAG 2.2). */
export function luminance(colour: Colour): number {
  const [red, green, blue] = colour.map((channel) => {
    const value = channel / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Contrast ratio of two luminances, 1–21 (WCAG 2.2). */
export function contrast(one: number, other: number): number {
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
}
