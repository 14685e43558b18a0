import { extname, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { IMAGE_PIXELS } from '../common/contract/ranges.ts';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { ImageFormat } from '../proto/gen/signpost/images/v1/images_pb.ts';
import { connectCore, UsageError } from './core.ts';
import { example, ofAccount, shownRange, wholeNumberIn } from './options.ts';
import { jsonOption, printRecord } from './output.ts';
import { drawnSize, halfBlocks, modulesOf } from './terminal-image.ts';
import { writeOutFile } from './write-out-file.ts';

const FORMATS = { png: ImageFormat.PNG, svg: ImageFormat.SVG } as const;

interface ImageOptions {
  readonly account: string;
  readonly id: string;
  readonly format?: keyof typeof FORMATS;
  readonly size?: number;
  readonly out?: string;
}

/** `code image`: writes the image of a code to a file, or draws it in the terminal. */
export function codeImageCommand(code: Command): void {
  const json = jsonOption(code);
  const image = ofAccount(code.command('image'))
    .description('write the image of a code to a file; without --out, draw it in the terminal')
    .requiredOption('--id <id>', 'qr_…')
    .option('--out <file>', 'the file to write; an existing one is replaced')
    .addOption(
      new Option('--format <format>', 'default: svg if --out ends with .svg, else png').choices(['png', 'svg']),
    )
    .option('--size <pixels>', `width and height of a PNG, ${shownRange(IMAGE_PIXELS)}`, wholeNumberIn(IMAGE_PIXELS));
  example(image, 'code image --account acct_… --id qr_… --out table-4.png --size 1024').action(
    async ({ account, id, out, format, size }: ImageOptions) => {
      if (out === undefined) {
        if (json()) throw new UsageError('--json: requires --out, as a drawing is no JSON.');
        if (format !== undefined || size !== undefined) throw new UsageError('--format and --size require --out.');
        console.log(await drawn(account, id));
        return;
      }
      const path = resolve(out);
      const used = format ?? (extname(path).toLowerCase() === '.svg' ? 'svg' : 'png');
      if (used === 'svg' && size !== undefined) throw new UsageError('--size: an SVG has no size in pixels.');
      const { images } = await connectCore(process.env, account);
      const request = { id, format: FORMATS[used], ...(size === undefined ? {} : { size }) };
      const { content } = await images.renderImage(request);
      if (await writeOutFile(path, [content])) printRecord(json(), { path });
    },
  );
}

/** The code in half blocks. Rejects if the terminal is too narrow. */
async function drawn(account: string, id: string): Promise<string> {
  const { images } = await connectCore(process.env, account);
  const { content } = await images.renderImage({ id, format: ImageFormat.SVG });
  const modules = modulesOf(Buffer.from(content).toString());
  const { columns } = process.stdout;
  if (columns !== undefined && columns < drawnSize(modules)) {
    throw new OperatorError(`The drawing needs ${drawnSize(modules)} columns, the terminal has ${columns}; use --out.`);
  }
  return halfBlocks(modules, ink());
}

/**
 * Without colours the drawing depends on the terminal's, which only some terminals state, in COLORFGBG: `0;15` is black
 * on white. Most are dark.
 */
function ink(): 'colours' | 'light' | 'dark' {
  if (process.stdout.isTTY && process.stdout.hasColors(256)) return 'colours';
  return /;(7|15)$/.test(process.env.COLORFGBG ?? '') ? 'dark' : 'light';
}
