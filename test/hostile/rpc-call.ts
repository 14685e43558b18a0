import { request as http1Request } from 'node:http';
import { connect as http2Connect, type IncomingHttpHeaders } from 'node:http2';

/** A call as bytes, by any of the protocols that a core speaks. */
export interface RawCall {
  /** As `signpost.codes.v1.CodesService/CreateCode`. */
  readonly method: string;
  /** The message, gzip-compressed. */
  readonly gzipped: Buffer;
  readonly json?: boolean;
  readonly key?: string;
}

/** How a call ended: the name or number of its code, and its sentence. */
export interface RawOutcome {
  readonly code: string;
  readonly message: string;
}

/** Sends a call in one protocol. */
export type RawProtocol = (call: RawCall) => Promise<RawOutcome>;

/** Every protocol and port of a core, by name. */
export function rawProtocols(ports: { corePort: number; grpcPort: number }): Readonly<Record<string, RawProtocol>> {
  const { corePort, grpcPort } = ports;
  return {
    'Connect over HTTP/1.1': (call) =>
      overHttp1(corePort, call, `application/${format(call)}`, false).then(fromConnect),
    'Connect over HTTP/2': (call) => overHttp2(corePort, call, `application/${format(call)}`, false).then(fromConnect),
    'gRPC-Web': (call) => overHttp1(corePort, call, `application/grpc-web+${format(call)}`, true).then(fromGrpc),
    'gRPC on the Connect port': (call) =>
      overHttp2(corePort, call, `application/grpc+${format(call)}`, true).then(fromGrpc),
    'native gRPC': (call) => overHttp2(grpcPort, call, `application/grpc+${format(call)}`, true).then(fromGrpc),
  };
}

interface Answer {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

const format = ({ json = false }: RawCall) => (json ? 'json' : 'proto');

function headersOf({ key }: RawCall, type: string, enveloped: boolean): Record<string, string> {
  return {
    'content-type': type,
    [enveloped ? 'grpc-encoding' : 'content-encoding']: 'gzip',
    te: 'trailers',
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
  };
}

function bodyOf({ gzipped }: RawCall, enveloped: boolean): Buffer {
  if (!enveloped) return gzipped;
  const head = Buffer.of(1, 0, 0, 0, 0);
  head.writeUInt32BE(gzipped.length, 1);
  return Buffer.concat([head, gzipped]);
}

function overHttp1(port: number, call: RawCall, type: string, enveloped: boolean): Promise<Answer> {
  const body = bodyOf(call, enveloped);
  const headers = { ...headersOf(call, type, enveloped), 'content-length': body.length };
  return new Promise((resolve, reject) => {
    const request = http1Request(
      { port, host: '127.0.0.1', method: 'POST', path: `/${call.method}`, headers, agent: false },
      (response) => {
        let text = '';
        response.setEncoding('latin1').on('data', (part: string) => {
          text += part;
        });
        response.on('end', () => resolve({ headers: { ...response.headers, ...response.trailers }, body: text }));
        response.on('error', reject);
      },
    );
    request.on('error', reject).end(body);
  });
}

function overHttp2(port: number, call: RawCall, type: string, enveloped: boolean): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const session = http2Connect(`http://127.0.0.1:${port}`);
    session.on('error', reject);
    const stream = session.request({
      ':method': 'POST',
      ':path': `/${call.method}`,
      ...headersOf(call, type, enveloped),
    });
    const headers: IncomingHttpHeaders = {};
    let text = '';
    stream.on('response', (given) => Object.assign(headers, given));
    stream.on('trailers', (given) => Object.assign(headers, given));
    stream.setEncoding('latin1').on('data', (part: string) => {
      text += part;
    });
    stream.on('error', reject);
    stream.on('close', () => {
      session.close();
      resolve({ headers, body: text });
    });
    stream.end(bodyOf(call, enveloped));
  });
}

function fromConnect({ body }: Answer): RawOutcome {
  const { code = 'ok', message = '' } = JSON.parse(body) as Partial<RawOutcome>;
  return { code, message };
}

/** Connect's names of the gRPC codes that tests expect. */
const CODES: Readonly<Record<string, string>> = {
  0: 'ok',
  3: 'invalid_argument',
  8: 'resource_exhausted',
  11: 'out_of_range',
  16: 'unauthenticated',
};

/** In gRPC-Web the trailers are at the end of the body. */
function fromGrpc({ headers, body }: Answer): RawOutcome {
  const said = (name: string) => String(headers[name] ?? new RegExp(`${name}: *([^\r\n]*)`, 'i').exec(body)?.[1] ?? '');
  const code = said('grpc-status');
  return { code: CODES[code] ?? code, message: decodeURIComponent(said('grpc-message')) };
}
