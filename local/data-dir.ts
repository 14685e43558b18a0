import { once } from 'node:events';
import { mkdir, rm } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { join, relative } from 'node:path';
import { Sentence } from './sentence.ts';

/**
 * Makes the folder and claims it for this process until it is disposed of or the process ends, however it ends: the
 * claim is a Unix socket that somebody listens on, so a crash can't leave one behind that counts.
 */
export async function claimDataDir(folder: string): Promise<AsyncDisposable> {
  // The system allows about 100 bytes; the way from here is mostly shorter than the whole path.
  const socket = relative(process.cwd(), join(folder, 'start.sock'));
  try {
    // Postgres may run as another user, who must get through to its own folder; what is secret is closed by itself.
    await mkdir(folder, { recursive: true, mode: 0o711 });
    await mkdir(join(folder, 'logs'), { recursive: true, mode: 0o700 });
    const server = await listen(socket).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EADDRINUSE') throw error;
      if (await answers(socket)) throw new Sentence(`Another Signpost is already using DATA_DIR (${folder}).`);
      await rm(socket, { force: true });
      return listen(socket);
    });
    return server;
  } catch (error) {
    if (error instanceof Sentence) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw new Sentence(`DATA_DIR (${folder}) can't be written to: ${code}.`, { cause: error });
  }
}

async function listen(socket: string): Promise<Server> {
  const server = createServer((connection) => connection.destroy()).listen(socket);
  await once(server, 'listening');
  return server;
}

async function answers(socket: string): Promise<boolean> {
  const connection = connect(socket);
  try {
    await once(connection, 'connect');
    return true;
  } catch {
    // Refused: whoever made the socket is gone.
    return false;
  } finally {
    connection.destroy();
  }
}
