import { Agent, type RequestOptions, request } from 'node:http';
import { connect } from 'node:net';
import {
  create,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import grpc from '@grpc/grpc-js';
import { onTestFinished } from 'vitest';

/** No answer for this long is a failure, in ms. */
const TIMEOUT_MS = 20_000;

/** Sends an HTTP request without ever repeating it. Rejects unless the answer has the expected status. */
export type Send = (
  method: string,
  url: string,
  expected: number,
  options?: { readonly headers?: Readonly<Record<string, string>>; readonly json?: unknown },
) => Promise<string>;

/** A client that keeps its connections, or one that opens one for each request. */
export function httpClient(keepAlive: boolean): Send {
  const agent = keepAlive ? new Agent({ keepAlive: true, maxSockets: 16 }) : false;
  onTestFinished(() => {
    if (agent) agent.destroy();
  });
  return async (method, url, expected, { headers = {}, json } = {}) => {
    const body = json === undefined ? undefined : JSON.stringify(json);
    const type = body === undefined ? {} : { 'content-type': 'application/json', 'content-length': `${body.length}` };
    const options = { method, agent, headers: { ...type, ...headers }, timeout: TIMEOUT_MS };
    const answer = await exchange(url, options, body);
    if (answer.status !== expected) throw new Error(`status ${answer.status} instead of ${expected}: ${answer.text}`);
    return answer.text;
  };
}

function exchange(
  url: string,
  options: RequestOptions,
  body: string | undefined,
): Promise<{ status: number | undefined; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(url, options, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      response.once('end', () => resolve({ status: response.statusCode, text }));
      response.once('error', reject);
    });
    sent.once('timeout', () => sent.destroy(new Error('no answer in time')));
    sent.once('error', reject);
    sent.end(body);
  });
}

const READINESS_MS = 500;

/**
 * An agent that keeps connections, and opens each new one to a core that was ready when it was last asked, as a Service
 * of Kubernetes does: the client itself knows one address, and repeats nothing.
 */
export function balancedAgent(cores: readonly { readonly url: string }[]): Agent {
  let ready = cores;
  let opened = 0;
  const ask = async () => {
    const answers = cores.map(async (core) => ((await isServing(core.url)) ? [core] : []));
    ready = (await Promise.all(answers)).flat();
  };
  const asking = setInterval(ask, READINESS_MS);
  const agent = new Agent({ keepAlive: true });
  agent.createConnection = () => {
    const { hostname: host, port } = new URL(ready[opened++ % ready.length]?.url ?? '');
    return connect({ host, port: Number(port) });
  };
  onTestFinished(() => {
    clearInterval(asking);
    agent.destroy();
  });
  return agent;
}

async function isServing(url: string): Promise<boolean> {
  const headers = { 'content-type': 'application/json', connection: 'close' };
  return fetch(`${url}/grpc.health.v1.Health/Check`, { method: 'POST', headers, body: '{}' }).then(
    async (response) => (await response.text()).includes('"SERVING"'),
    () => false,
  );
}

/** A client of the library grpc-js for several cores, `host:port` with IPv4 addresses, which it uses round-robin. */
export function grpcClient(addresses: string, metadata: Readonly<Record<string, string>>) {
  const client = new grpc.Client(`ipv4:${addresses}`, grpc.credentials.createInsecure(), {
    'grpc.service_config': JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }] }),
  });
  onTestFinished(() => client.close());
  const headers = new grpc.Metadata();
  for (const [name, value] of Object.entries(metadata)) headers.set(name, value);

  return <Method extends DescMethodUnary>(
    method: Method,
    message: MessageInitShape<Method['input']>,
  ): Promise<MessageShape<Method['output']>> =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        `/${method.parent.typeName}/${method.name}`,
        (input: MessageShape<Method['input']>) => Buffer.from(toBinary(method.input, input)),
        (bytes) => fromBinary(method.output, bytes) as MessageShape<Method['output']>,
        create(method.input, message) as MessageShape<Method['input']>,
        headers,
        { deadline: Date.now() + TIMEOUT_MS },
        (error, response) => (error || !response ? reject(error) : resolve(response)),
      );
    });
}
