import { open, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Puts a text in place of what a file held. The file is there whole or as it was, also when the power is cut. */
export async function replaceFile(path: string, text: string, mode = 0o644): Promise<void> {
  const draft = `${path}.new`;
  // Without the flush a power cut within half a minute can leave the new name with nothing in it.
  await writeFile(draft, text, { mode, flush: true });
  await rename(draft, path);
  await using folder = await open(dirname(path));
  await folder.sync();
}
