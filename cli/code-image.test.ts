import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { lstat, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { Resvg } from '@resvg/resvg-js';
import jsqr from 'jsqr';
import { PNG } from 'pngjs';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import type { CodeJson } from '../common/contract/code-json.ts';
import { BatchesService } from '../proto/gen/signpost/batches/v1/batches_pb.ts';
import { afterFile } from '../test/harness/after-file.ts';
import { type Signpost, startSignpost } from '../test/harness/processes.ts';
import { commandLine } from './cli.fixture.ts';
import { modulesOf } from './terminal-image.ts';

let signpost: Signpost;
let account: string;
let code: CodeJson;
let folder: string;
beforeAll(async () => {
  signpost = await startSignpost({ gateways: 0 });
  ({ accountId: account } = await signpost.createAccount());
  code = await json<CodeJson>('code', 'create', '--target-url', 'https://example.com', '--account', account);
  folder = await mkdtemp(join(tmpdir(), 'signpost-image-'));
  afterFile(() => rm(folder, { recursive: true, force: true }));
});

const { run, json } = commandLine(() => signpost);
const image = (id: string, ...args: string[]) => ['code', 'image', '--account', account, '--id', id, ...args];

/** What jsQR, which tries no inverted images here, reads. `light`: of a pixel. */
function decoded(width: number, height: number, light: (x: number, y: number) => boolean): string | undefined {
  const scale = 4;
  const pixels = new Uint8ClampedArray(width * height * scale * scale * 4);
  for (let y = 0; y < height * scale; y++) {
    for (let x = 0; x < width * scale; x++) {
      const value = light(Math.floor(x / scale), Math.floor(y / scale)) ? 255 : 0;
      pixels.set([value, value, value, 255], (y * width * scale + x) * 4);
    }
  }
  return jsqr.default(pixels, width * scale, height * scale, { inversionAttempts: 'dontInvert' })?.data;
}

/** Reads half blocks on a terminal whose characters are light, or dark. */
function decodedBlocks(drawing: string, ink: 'light' | 'dark'): string | undefined {
  const lines = drawing.replace(/\r?\n$/, '').split(/\r?\n/);
  const width = Math.max(...lines.map((line) => line.length));
  const hasInk = (x: number, y: number) =>
    (lines[y >> 1]?.[x] ?? ' ') === '█' || lines[y >> 1]?.[x] === (y % 2 ? '▄' : '▀');
  return decoded(width, lines.length * 2, (x, y) => hasInk(x, y) === (ink === 'light'));
}

test('a PNG has the size that was asked for, and encodes the scan URL', async () => {
  const path = join(folder, 'code.png');
  expect(await json(...image(code.id, '--out', path, '--size', '300'))).toEqual({ path });
  const { width, height, data } = PNG.sync.read(await readFile(path));
  expect([width, height]).toEqual([300, 300]);
  expect(jsqr.default(new Uint8ClampedArray(data), width, height)?.data).toBe(code.scan_url);
  expect(await readdir(folder)).toEqual(['code.png']);
});

test('an SVG is written to a file that ends with .svg', async () => {
  const path = join(folder, 'code.svg');
  expect(await json(...image(code.id, '--out', path))).toEqual({ path });
  const drawn = new Resvg(await readFile(path, 'utf8'), { fitTo: { mode: 'width', value: 400 } }).render();
  expect(jsqr.default(new Uint8ClampedArray(drawn.pixels), 400, 400)?.data).toBe(code.scan_url);
  await json(...image(code.id, '--out', path, '--format', 'png'));
  expect((await readFile(path)).subarray(1, 4).toString()).toBe('PNG');
});

test('a named pipe is written to, and a symbolic link still leads to its file', async () => {
  const exec = promisify(execFile);
  const pipe = join(folder, 'pipe');
  await exec('mkfifo', [pipe]);
  const [piped] = await Promise.all([
    exec('cat', [pipe], { timeout: 10_000, encoding: 'buffer' }),
    json(...image(code.id, '--out', pipe)),
  ]);
  expect(piped.stdout.subarray(1, 4).toString()).toBe('PNG');
  expect((await lstat(pipe)).isFIFO()).toBe(true);

  const [file, link] = [join(folder, 'linked.png'), join(folder, 'link.png')];
  await writeFile(file, 'before');
  await symlink(file, link);
  await json(...image(code.id, '--out', link));
  expect((await lstat(link)).isSymbolicLink()).toBe(true);
  expect((await readFile(file)).subarray(1, 4).toString()).toBe('PNG');
});

test('an image on standard output is followed by nothing', async () => {
  const env = { ...process.env, CORE_PORT: String(signpost.corePort), SERVICE_TOKEN: signpost.serviceToken };
  const [path, link] = [join(folder, 'piped.png'), join(folder, 'stdout')];
  await symlink('/dev/stdout', link);
  for (const out of ['/dev/stdout', link]) {
    const command = `"$0" cli/main.ts ${image(code.id, '--out', out).join(' ')} | cat > '${path}'`;
    await promisify(execFile)('bash', ['-c', command, process.execPath], { env });
    // The last chunk of a PNG, with its checksum.
    expect((await readFile(path)).subarray(-8).toString('hex')).toBe('49454e44ae426082');
  }
});

test.each(['SIGINT', 'SIGTERM'] as const)('a file that %s interrupts leaves nothing behind', async (signal) => {
  const place = await mkdtemp(join(folder, 'interrupted-'));
  const path = join(place, 'codes.zip');
  const others = `${path}.part`;
  await writeFile(others, 'of another program');
  const { promise: began, resolve: begin } = Promise.withResolvers<void>();
  const core = createServer(
    connectNodeAdapter({
      routes: ({ service }) =>
        service(BatchesService, {
          getBatch: () => ({ batch: {} }),
          async *exportBatch(_, { signal }) {
            yield { chunk: Buffer.alloc(100_000) };
            begin();
            await once(signal, 'abort');
          },
        }),
    }),
  );
  await once(core.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void core.close());
  const { port } = core.address() as AddressInfo;
  const env = { ...process.env, CORE_PORT: String(port), SERVICE_TOKEN: 'x' };
  const args = ['batch', 'export', '--account', 'acct_1', '--id', 'batch_1', '--out', path];
  const exporting = spawn(process.execPath, ['cli/main.ts', ...args], { env });
  await began;
  await expect.poll(() => readdir(place)).toHaveLength(2);
  exporting.kill(signal);
  expect(await once(exporting, 'close')).toEqual([null, signal]);
  expect(await readdir(place)).toEqual(['codes.zip.part']);
  expect(await readFile(others, 'utf8')).toBe('of another program');
});

test('a drawing without colours is for a dark terminal, or for the one that COLORFGBG states', async () => {
  const dark = await run(image(code.id));
  expect(dark).toMatchObject({ code: 0, stderr: '' });
  expect(dark.stdout).toMatch(/^[ ▀▄█\n]+$/);
  expect(decodedBlocks(dark.stdout, 'light')).toBe(code.scan_url);
  const light = await run(image(code.id), { COLORFGBG: '0;15' });
  expect(decodedBlocks(light.stdout, 'dark')).toBe(code.scan_url);
});

test('the longest payload is drawn too', async () => {
  const payload = 'x'.repeat(2_331);
  const made = await json<CodeJson>('code', 'create-static', '--payload', payload, '--account', account);
  expect(decodedBlocks((await run(image(made.id))).stdout, 'light')).toBe(payload);
});

/** Runs a command in a terminal of 80 columns with `script` (util-linux). */
function inTerminal(args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const command = `stty cols \${WIDTH:-80}; '${process.execPath}' cli/main.ts ${args.join(' ')}`;
  // With CI, Node takes a terminal for one without colours.
  const { NO_COLOR: _, FORCE_COLOR: __, CI: ___, ...inherited } = process.env;
  const variables = {
    ...inherited,
    CORE_PORT: String(signpost.corePort),
    SERVICE_TOKEN: signpost.serviceToken,
    TERM: 'xterm-256color',
    ...env,
  };
  return new Promise((resolve) => {
    execFile('script', ['-qec', command, '/dev/null'], { env: variables }, (_, stdout) => resolve(stdout));
  });
}

const BLACK_ON_WHITE = '\u001b[38;5;16;48;5;231m';
const isLinux = process.platform === 'linux';

test.runIf(isLinux)('on a terminal the drawing is black on white, whatever the theme', async () => {
  const lines = (await inTerminal(image(code.id))).trimEnd().split('\r\n');
  for (const line of lines) {
    expect(line.startsWith(BLACK_ON_WHITE)).toBe(true);
    expect(line.endsWith('\u001b[0m')).toBe(true);
  }
  const drawing = lines.map((line) => line.slice(BLACK_ON_WHITE.length, -'\u001b[0m'.length)).join('\n');
  expect(decodedBlocks(drawing, 'dark')).toBe(code.scan_url);
  const plain = await inTerminal(image(code.id), { NO_COLOR: '1' });
  expect(plain).not.toContain('\u001b');
  expect(decodedBlocks(plain, 'light')).toBe(code.scan_url);
});

test.runIf(isLinux)('a terminal that is too narrow gets a sentence', async () => {
  expect(await inTerminal(image(code.id), { WIDTH: '36' })).toBe(
    'The drawing needs 37 columns, the terminal has 36; use --out.\r\n',
  );
});

test('invalid usage, and a file that cannot be written', async () => {
  for (const args of [
    ['--json'],
    ['--size', '300'],
    ['--format', 'svg'],
    ['--out', 'x', '--format', 'gif'],
    ['--out', 'x', '--size', '127'],
    ['--out', 'x', '--size', '4097'],
    ['--out', 'x.svg', '--size', '300'],
    ['--out', 'x', '--format', 'svg', '--size', '300'],
    ['--out', ''],
  ]) {
    expect(await run(image(code.id, ...args))).toMatchObject({ code: 2, stdout: '' });
  }
  const path = join(folder, 'none', 'code.png');
  expect(await run(image(code.id, '--out', path))).toEqual({
    code: 2,
    stdout: '',
    stderr: `--out: ${path} can't be written (ENOENT).\n`,
  });
});

test('only an image of whole modules is drawn', () => {
  const svg = (path: string) => `<svg viewBox="0 0 3 3"><path d="${path}"/></svg>`;
  expect(modulesOf(svg('M1 1h1v1h-1z'))).toEqual([[true]]);
  for (const path of ['', 'M1 1h1v1h-2z', 'M1 1h1v1h-1zM0 0c1']) expect(() => modulesOf(svg(path))).toThrow('--out');
});
