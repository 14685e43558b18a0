import { contrast, luminance, parseColour } from './colour.ts';

/** Below this contrast many scanners fail; WCAG 2.2 requires the same of graphics. */
export const MIN_CONTRAST = 3;

/** Why codes in some colours may be unreadable: light modules on a dark background, or too little contrast. */
export type DesignProblem =
  | { readonly kind: 'inverted' }
  | { readonly kind: 'low_contrast'; readonly contrast: number };

/** What may make a code in these colours unreadable; undefined if nothing. */
export function designProblem(foreground: string, background: string): DesignProblem | undefined {
  const dark = luminance(parseColour(foreground));
  const light = luminance(parseColour(background));
  if (dark > light) return { kind: 'inverted' };
  const ratio = contrast(dark, light);
  return ratio >= MIN_CONTRAST ? undefined : { kind: 'low_contrast', contrast: ratio };
}
