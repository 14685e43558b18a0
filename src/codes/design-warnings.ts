import { designJson } from '../../common/contract/code-json.ts';
import type { Design } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { type Colour, parseColour } from './colour.ts';

/** Below this many readers give up; WCAG 2.2 asks the same of graphics. */
const LEAST_CONTRAST = 3;

/** A sentence when a code in these colours may not scan; undefined when it will. */
export function designWarning(foreground: string, background: string): string | undefined {
  const dark = luminance(parseColour(foreground));
  const light = luminance(parseColour(background));
  if (dark > light) return 'design: light modules on a dark ground are not read by every scanner.';
  const contrast = (light + 0.05) / (dark + 0.05);
  if (contrast >= LEAST_CONTRAST) return undefined;
  return `design: the colours differ by ${contrast.toFixed(1)}:1 only; below ${LEAST_CONTRAST}:1 many scanners fail.`;
}

/** The same for the colours of a code or batch, as the answers that create one carry it; black on white by default. */
export function designWarnings(design: Design | undefined): string[] {
  const { foregroundColor, backgroundColor } = designJson(design);
  return [designWarning(foregroundColor, backgroundColor)].filter((warning) => warning !== undefined);
}

/** Relative luminance, 0–1 (WCAG 2.2). */
export function luminance(colour: Colour): number {
  const [red, green, blue] = colour.map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
