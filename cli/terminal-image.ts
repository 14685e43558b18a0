import { OperatorError } from '../common/runtime/operator-error.ts';

/** The modules of a QR code, without its quiet zone: rows of dark (true) and light ones. */
export type Modules = readonly (readonly boolean[])[];

/** Light modules on every side, as the standard requires (ISO/IEC 18004): a terminal is rarely as white as paper. */
const QUIET_ZONE = 4;

/** Black on white of the fixed part of the 256 colours, which themes don't change. */
const BLACK_ON_WHITE = '\u001b[38;5;16;48;5;231m';
const RESET = '\u001b[0m';

/**
 * Reads the modules from an image of the core: an SVG with one unit per module, a quiet zone, and the dark modules as
 * horizontal runs in its last path. Throws if it is anything else.
 */
export function modulesOf(svg: string): Modules {
  const across = Number(/viewBox="0 0 (\d+) /.exec(svg)?.[1]);
  const path = [...svg.matchAll(/ d="([^"]*)"/g)].at(-1)?.[1] ?? '';
  const runs = [...path.matchAll(/M(\d+) (\d+)h(\d+)v1h-\3z/g)];
  if (!across || runs.length === 0 || runs.map(([run]) => run).join('') !== path) {
    throw new OperatorError('The core’s image cannot be drawn in a terminal; use --out.');
  }
  const dark = Array.from({ length: across }, () => new Array<boolean>(across).fill(false));
  for (const run of runs) {
    const [x = 0, y = 0, width = 0] = run.slice(1).map(Number);
    dark[y]?.fill(true, x, x + width);
  }
  // The first run is the top of the finder pattern in the corner.
  const margin = Number(runs[0]?.[1]);
  return dark.slice(margin, across - margin).map((row) => row.slice(margin, across - margin));
}

/** The width and height of a drawing with its quiet zone, in modules; a character is one module wide and two high. */
export function drawnSize(modules: Modules): number {
  return modules.length + 2 * QUIET_ZONE;
}

/**
 * Draws a code with half blocks, two modules per character. `ink`: what the terminal draws characters with. With
 * `colours` the drawing sets black on white itself; otherwise light characters on a dark terminal have to be the light
 * modules.
 */
export function halfBlocks(modules: Modules, ink: 'colours' | 'light' | 'dark'): string {
  const size = drawnSize(modules);
  const inked = (x: number, y: number) => {
    const dark = modules[y - QUIET_ZONE]?.[x - QUIET_ZONE] ?? false;
    // Below the last row there may be half a character.
    return ink === 'light' ? !dark && y < size : dark;
  };
  const lines: string[] = [];
  for (let y = 0; y < size; y += 2) {
    let line = '';
    for (let x = 0; x < size; x++) {
      const [top, bottom] = [inked(x, y), inked(x, y + 1)];
      line += top ? (bottom ? '█' : '▀') : bottom ? '▄' : ' ';
    }
    lines.push(ink === 'colours' ? `${BLACK_ON_WHITE}${line}${RESET}` : line);
  }
  return lines.join('\n');
}
