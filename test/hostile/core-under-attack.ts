import { type Client, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { afterEach, beforeAll, expect } from 'vitest';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { bearer } from '../../src/rpc/rpc-suite.fixture.ts';
import { contract } from '../contract/client.ts';
import { childrenOf, scanUrl, statusOf } from '../faults/visitors.ts';
import { COLLECTING, expectReturned, type Figures, figuresOf } from './process-resources.ts';
import { type RawSockets, rawSockets } from './raw-sockets.ts';

/** The ports of a core: Connect, gRPC-Web and gRPC over HTTP/1.1 and HTTP/2; native gRPC. */
export const PORTS = ['corePort', 'grpcPort'] as const;

/** The core's connections to Postgres, whose number varies. */
const TO_POSTGRES = 20;

/** A Signpost whose core is attacked by the calling file's tests. */
export interface CoreUnderAttack {
  readonly raw: Readonly<Record<(typeof PORTS)[number], RawSockets>>;
  /** Expects that a call on each port and a scan are answered. */
  goesOn(): Promise<void>;
  /** Process ids of the core and the gateway's workers. */
  figures(): Promise<Figures>;
}

/**
 * Starts it, and after every test expects that the same processes still answer, and that their sockets, descriptors and
 * memory return to normal.
 */
export function coreUnderAttack(): CoreUnderAttack {
  const running = contract({ env: COLLECTING });
  const raw = {
    corePort: rawSockets(() => running.signpost.corePort),
    grpcPort: rawSockets(() => running.signpost.grpcPort),
  };
  let code: CodeJson;
  let clients: Client<typeof CodesService>[];
  let pids: number[];
  let before: Figures;

  async function processes(): Promise<number[]> {
    const { cores, gateways } = running.signpost;
    const workers = await Promise.all(gateways.map((gateway) => childrenOf(gateway, 'gateway/worker.ts')));
    return [...cores.map(({ pid }) => pid), ...workers.flat()];
  }

  async function goesOn(): Promise<void> {
    for (const client of clients) expect((await client.getCode({ id: code.id })).code?.id).toBe(code.id);
    expect(await statusOf(scanUrl(running.signpost, code))).toBe(302);
  }

  beforeAll(async () => {
    const account = await running.account();
    code = await account.create();
    clients = PORTS.map((port) => {
      const baseUrl = `http://127.0.0.1:${running.signpost[port]}`;
      const interceptors = [bearer(running.signpost.serviceToken, { 'signpost-account': account.id })];
      return createClient(CodesService, createGrpcTransport({ baseUrl, interceptors }));
    });
    await goesOn();
    pids = await processes();
    before = await figuresOf(pids);
  });

  afterEach(async () => {
    for (const port of PORTS) raw[port].destroyAll();
    expect(await processes()).toEqual(pids);
    await goesOn();
    await expectReturned(pids, before, TO_POSTGRES);
    expect(await running.signpost.gateways[0]?.log()).not.toMatch(/has exited|does not respond/);
  });

  return { raw, goesOn, figures: () => figuresOf(pids) };
}
