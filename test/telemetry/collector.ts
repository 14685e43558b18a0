import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { LOOPBACK } from '../../local/free-port.ts';
import { afterFile } from '../harness/after-file.ts';

type Attributes = Readonly<Record<string, string | number>>;

/** A value of a counter or gauge. */
interface Point {
  readonly attributes: Attributes;
  readonly value: number | undefined;
}

/** A span that was received. */
export interface ReceivedSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the root of a trace. */
  readonly parentSpanId: string;
  readonly attributes: Attributes;
  readonly resource: Attributes;
}

/** A collector of OTLP over HTTP as JSON, closed after the calling file's tests. */
export interface Collector {
  readonly url: string;
  readonly spans: ReceivedSpan[];
  /** Names of metrics, with the resource that they are of, and what was counted or is current. */
  readonly metrics: { readonly name: string; readonly resource: Attributes; readonly points: readonly Point[] }[];
}

interface Otlp {
  readonly attributes?: readonly { key: string; value: { stringValue?: string; intValue?: number } }[];
}

interface Points {
  readonly dataPoints: readonly (Otlp & { asInt?: number; asDouble?: number })[];
}

interface Request {
  readonly resourceSpans?: readonly {
    resource: Otlp;
    scopeSpans: readonly { spans: readonly (Omit<ReceivedSpan, 'attributes' | 'resource'> & Otlp)[] }[];
  }[];
  readonly resourceMetrics?: readonly {
    resource: Otlp;
    scopeMetrics: readonly { metrics: readonly { name: string; sum?: Points; gauge?: Points }[] }[];
  }[];
}

export async function startCollector(): Promise<Collector> {
  const spans: ReceivedSpan[] = [];
  const metrics: Collector['metrics'] = [];
  const server = createServer(async (request, response) => {
    const body = JSON.parse(Buffer.concat(await request.toArray()).toString()) as Request;
    for (const { resource, scopeSpans } of body.resourceSpans ?? []) {
      for (const { parentSpanId = '', ...span } of scopeSpans.flatMap((scope) => scope.spans)) {
        spans.push({ ...span, parentSpanId, attributes: valuesOf(span), resource: valuesOf(resource) });
      }
    }
    for (const { resource, scopeMetrics } of body.resourceMetrics ?? []) {
      for (const { name, sum, gauge } of scopeMetrics.flatMap((scope) => scope.metrics)) {
        const { dataPoints } = sum ?? gauge ?? { dataPoints: [] };
        const points = dataPoints.map((point) => ({
          attributes: valuesOf(point),
          value: point.asInt ?? point.asDouble,
        }));
        metrics.push({ name, resource: valuesOf(resource), points });
      }
    }
    response.setHeader('content-type', 'application/json').end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, LOOPBACK, resolve));
  afterFile(async () => void server.close().closeAllConnections());
  return { url: `http://${LOOPBACK}:${(server.address() as AddressInfo).port}`, spans, metrics };
}

function valuesOf({ attributes = [] }: Otlp): Attributes {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue ?? Number.NaN)]),
  );
}
