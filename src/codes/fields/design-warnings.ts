import { designProblem, MIN_CONTRAST } from '../../../common/codes/design-problem.ts';
import { designJson } from '../../../common/contract/code-json.ts';
import type { Design } from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';

/** A warning when a code in these colours may be unreadable; otherwise undefined. */
export function designWarning(foreground: string, background: string): string | undefined {
  const problem = designProblem(foreground, background);
  if (!problem) return undefined;
  if (problem.kind === 'inverted') {
    return 'design: light modules on a dark background cannot be read by every scanner.';
  }
  return `design: the contrast of the colours is only ${problem.contrast.toFixed(1)}:1; below ${MIN_CONTRAST}:1 many scanners fail.`;
}

/** The warnings about the colours of a new code or batch, for the response; black on white by default. */
export function designWarnings(design: Design | undefined): string[] {
  const { foregroundColor, backgroundColor } = designJson(design);
  return [designWarning(foregroundColor, backgroundColor)].filter((warning) => warning !== undefined);
}
