import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { SingleBar } from 'cli-progress';
import { type Command, Option } from 'commander';
import { ImageFormat } from '../proto/gen/signpost/images/v1/images_pb.ts';
import { connectCore } from './core.ts';
import { example, ofAccount } from './options.ts';
import { jsonOption, printRecord } from './output.ts';

const FORMATS = { png: ImageFormat.PNG, svg: ImageFormat.SVG };

interface ExportOptions {
  readonly account: string;
  readonly id: string;
  readonly format: keyof typeof FORMATS;
  readonly out: string;
}

/** `batch …`: exports the images of a batch for printing. */
export function batchCommands(batch: Command): void {
  const json = jsonOption(batch);

  const line = 'batch export --account acct_… --id batch_… --format svg --out codes.zip';
  example(ofAccount(batch.command('export')), line)
    .description('save the images of a batch as a ZIP file, in print order, with a manifest')
    .requiredOption('--id <id>', 'batch_…')
    .addOption(new Option('--format <format>', 'the image format').choices(['png', 'svg']).default('png'))
    .requiredOption('--out <file>', 'the file to write; an existing one is replaced')
    .action(async ({ account, id, format, out }: ExportOptions) => {
      const { batches } = await connectCore(process.env, account);
      const { batch: found } = await batches.getBatch({ id, limit: 1 });
      const path = resolve(out);
      // Written to a temporary file first, so that a failed export leaves no partial file under the name.
      const part = `${path}.part`;
      const bar = new SingleBar({ format: '{bar} {value} of {total} images', stopOnComplete: true });
      const shown = process.stderr.isTTY && !json();
      if (shown) bar.start(found?.counts?.created ?? 0, 0);
      let images = 0;
      async function* received() {
        for await (const answer of batches.exportBatch({ id, format: FORMATS[format] })) {
          images = answer.images;
          if (shown) bar.update(images);
          yield answer.chunk;
        }
      }
      try {
        await pipeline(received, createWriteStream(part));
        await rename(part, path);
      } catch (error) {
        await rm(part, { force: true });
        throw error;
      } finally {
        bar.stop();
      }
      printRecord(json(), { path, images });
    });
}
