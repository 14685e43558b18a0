import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { prepareZXingModule, readBarcodes } from 'zxing-wasm/reader';

/** Reads the text of the code in a PNG; undefined if it finds none. */
export type Decoder = (png: Buffer) => Promise<string | undefined>;

let prepared = false;

/** ZXing (C++, as WebAssembly). */
export const readByZxing: Decoder = async (png) => {
  if (!prepared) {
    // By default it downloads its module from a CDN.
    const wasm = fileURLToPath(import.meta.resolve('zxing-wasm/reader/zxing_reader.wasm'));
    prepareZXingModule({ overrides: { wasmBinary: new Uint8Array(readFileSync(wasm)).buffer } });
    prepared = true;
  }
  const [code] = await readBarcodes(new Uint8Array(png), { formats: ['QRCode'] });
  return code?.text;
};

/** ZBar's own program. With its defaults it converts the text to UTF-8, as applications use it. */
export const readByZbar: Decoder = (png) =>
  new Promise((resolve) => {
    const options = ['--quiet', '--raw', '--nodbus', '--oneshot', '-Sdisable', '-Sqrcode.enable', '-'];
    const program = execFile('zbarimg', options, { timeout: 60_000 }, (error, text) =>
      resolve(error ? undefined : text.replace(/\n$/, '')),
    );
    program.stdin?.on('error', () => {});
    program.stdin?.end(png);
  });

/** Decodes one base64 PNG a line, and prints its text as JSON. */
const OPENCV = `
import base64, cv2, json, numpy, sys
detector = cv2.QRCodeDetector()
print(json.dumps(cv2.__version__), flush=True)
for line in sys.stdin:
    image = cv2.imdecode(numpy.frombuffer(base64.b64decode(line), numpy.uint8), cv2.IMREAD_COLOR)
    try:
        text, corners, _ = detector.detectAndDecode(image)
    except Exception:
        text = ''
    print(json.dumps(text if text else None), flush=True)
`;

/** OpenCV in a Python that has it; undefined if it does not. Images are read one after another. */
export async function openCv(python: string): Promise<{ version: string; read: Decoder; stop(): void } | undefined> {
  const program: ChildProcess = spawn(python, ['-c', OPENCV], { stdio: ['pipe', 'pipe', 'ignore'] });
  program.on('error', () => {});
  program.stdin?.on('error', () => {});
  if (!program.stdout) return undefined;
  const lines = createInterface(program.stdout)[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await lines.next();
    return done ? undefined : (JSON.parse(value) as string | null);
  };
  const version = await next();
  if (typeof version !== 'string') return undefined;
  const read: Decoder = async (png) => {
    program.stdin?.write(`${png.toString('base64')}\n`);
    return (await next()) ?? undefined;
  };
  return { version, read, stop: () => void program.kill() };
}
