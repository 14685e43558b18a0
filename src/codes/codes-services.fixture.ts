import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf';
import { createContextValues, type HandlerContext, type ServiceImpl } from '@connectrpc/connect';
import { afterAll, beforeAll, vi } from 'vitest';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { insertAccount } from '../../test/harness/insert-account.ts';
import { callerKey } from '../access/caller.ts';
import { openMeters } from '../access/usage.ts';
import { asFailure } from '../calls/as-failure.ts';
import { cursors } from '../calls/cursors.ts';
import { type Database, openDatabase } from '../db/database.ts';
import { entities } from '../entities.ts';
import { codesService } from './service.ts';

const PLATFORM = 'https://go.example';

/** An account. */
export interface Tenant {
  readonly id: string;
  readonly codeLimit: number | null;
}

/** How a call is made. */
export interface CallOptions {
  readonly of: Tenant;
  readonly core?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** The service of codes of two cores over one database, which exists during the tests of the calling file. */
export function codesServices() {
  let databases: Database[];
  let services: ServiceImpl<typeof CodesService>[];
  beforeAll(async () => {
    const { url } = await freshDatabase();
    databases = await Promise.all([openDatabase(url, 20, entities), openDatabase(url, 20, entities)]);
    services = databases.map((database) =>
      codesService({
        database,
        platformUrl: PLATFORM,
        isPlatformHost: () => false,
        cursors: cursors(Buffer.alloc(32)).byId,
      }),
    );
  });
  afterAll(() => Promise.all(databases.map((database) => database.close())));

  const pool = (core = 0) => {
    const database = databases[core];
    if (!database) throw new Error(`no core ${core}`);
    return database.pool;
  };

  return {
    pool,
    /** The names of the statements that `work` runs in the first core. */
    async statementsOf(work: () => Promise<unknown>): Promise<string[]> {
      const client = await pool().connect();
      const query = vi.spyOn(Object.getPrototypeOf(client), 'query');
      client.release();
      try {
        await work();
        return query.mock.calls.map(([what]) => (what as { readonly name?: string }).name ?? String(what));
      } finally {
        query.mockRestore();
      }
    },
    async newTenant(codeLimit: number | null = null): Promise<Tenant> {
      const id = await insertAccount(pool());
      await openMeters(pool(), id);
      return { id, codeLimit };
    },
    /** Calls a method as a caller with an API key does. Errors are those of the catalogue. */
    async call<Request extends DescMessage, Response extends DescMessage>(
      method: DescMethodUnary<Request, Response>,
      message: MessageInitShape<Request>,
      { of, core = 0, headers, signal }: CallOptions,
    ): Promise<MessageShape<Response> & { readonly replayed: string | null }> {
      const values = createContextValues();
      const features = { api: true, bulk: true, images: true };
      values.set(callerKey, {
        kind: 'key',
        account: { ...of, features, batchLimit: 1_000 },
        // Postgres runs on this machine.
        rate: { limit: null, used: 1, reset: 0, clock: String(Date.now()) },
        receivedAt: 0,
      });
      const context = {
        values,
        signal: signal ?? new AbortController().signal,
        requestHeader: new Headers(headers),
        responseHeader: new Headers(),
        service: CodesService,
        method,
      } as unknown as HandlerContext;
      const request = create(method.input, message);
      const implementation = services[core] as unknown as Record<
        string,
        (request: MessageShape<Request>, context: HandlerContext) => Promise<MessageShape<Response>>
      >;
      try {
        const response = await implementation[method.localName]?.(request, context);
        if (!response) throw new Error(`no method ${method.name}`);
        return { ...response, replayed: context.responseHeader.get('idempotent-replay') };
      } catch (error) {
        throw asFailure(error, { stream: false, method, message: request });
      }
    },
  };
}
