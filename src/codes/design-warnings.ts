import { designJson } from '../../common/contract/code-json.ts';
import type { Design } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { type Colour, parseColour } from './colour.ts';

/** Below this contrast many scanners fail; WCAG 2.2 requires the same of graphics. */
const MIN_CONTRAST = 3;

/** A warning when a code in these colours may be unreadable; otherwise undefined. */
export function designWarning(foreground: string, background: string): string | undefined {
  const dark = luminance(parseColour(foreground));
  const light = luminance(parseColour(background));
  if (dark > light) return 'design: light modules on a dark background cannot be read by every scanner.';
  const contrast = (light + 0.05) / (dark + 0.05);
  if (contrast >= MIN_CONTRAST) return undefined;
  return `design: the contrast of the colours is only ${contrast.toFixed(1)}:1; below ${MIN_CONTRAST}:1 many scanners fail.`;
}

/** The warnings about the colours of a new code or batch, for the response; black on white by default. */
export function designWarnings(design: Design | undefined): string[] {
  const { foregroundColor, backgroundColor } = designJson(design);
  return [designWarning(foregroundColor, backgroundColor)].filter((warning) => warning !== undefined);
}

/** Relative luminance, 0–1 (WCAG 2.2). */
export function luminance(colour: Colour): number {
  const [red, green, blue] = colour.map((channel) => {
    const value = channel / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
