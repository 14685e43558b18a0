import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { ImageFormat } from '../proto/gen/signpost/images/v1/images_pb.ts';
import { connectCore } from './core.ts';
import { exitUnfulfilled } from './exit-codes.ts';
import { example, ofAccount } from './options.ts';
import { jsonOption, printRecord } from './output.ts';
import { withProgress } from './progress.ts';
import { writeOutFile } from './write-out-file.ts';

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
      const { pending = 0, created = 0 } = found?.counts ?? {};
      let images = 0;
      const isPrinted = await withProgress({ json: json(), what: 'Exporting images' }, async (update) => {
        async function* received() {
          for await (const answer of batches.exportBatch({ id, format: FORMATS[format] })) {
            images = answer.images;
            update(images, created);
            yield answer.chunk;
          }
        }
        return writeOutFile(path, received());
      });
      if (pending > 0) {
        exitUnfulfilled();
        const rows = pending === 1 ? '1 row of the batch is' : `${pending} rows of the batch are`;
        console.error(`${rows} still pending; export it again later.`);
      }
      if (isPrinted) printRecord(json(), { path, images });
    });
}
