import { randomUUID } from 'node:crypto';
import { ApiError, SignpostError } from './errors.ts';
import { Listing, type Page } from './listing.ts';
import { pause } from './pause.ts';
import { splitRows } from './split-rows.ts';
import { type CreateOptions, jsonOf, type RequestOptions, type Send } from './transport.ts';
import type {
  Batch,
  BatchRow,
  BatchRowInput,
  CreateBatchRequest,
  CreateBatchResponse,
  GetBatchResponse,
  ListBatchesResponse,
} from './types.gen.ts';

/** A new batch. */
export interface CreatedBatch extends Batch {
  /** Sentences about colours that scanners may be unable to read. */
  readonly warnings: readonly string[];
}

/** A batch of any number of rows. */
export interface CreateAllRequest extends Omit<CreateBatchRequest, 'rows'> {
  readonly rows: Iterable<BatchRowInput>;
  /**
   * The rows in one batch at most; default, and for 0 and less: 25,000, the limit of the API. A plan may allow fewer.
   */
  readonly rowsPerBatch?: number;
}

/** The waits between two looks at a batch that is not completed, in ms: they double. */
const WAIT_MS = { first: 500, longest: 10_000 };

/**
 * How often a rejected part is sent again with another key: enough for a job that repeats it every 90 minutes for a
 * day. Each time it is sent with all the keys before.
 */
const MOST_REJECTIONS = 20;

/** Batches: many codes in one request. */
export class Batches {
  readonly #send: Send;

  constructor(send: Send) {
    this.#send = send;
  }

  /** The batches of the account, newest first, without their rows. `limit`: the page size, 1 to 100; default 25. */
  list(params: { readonly limit?: number; readonly offset?: number } = {}, options: RequestOptions = {}) {
    const page = async (offset: number, before: string | undefined): Promise<Page<Batch>> => {
      const query = { ...params, offset };
      const response = await this.#send({ method: 'GET', path: ['batches'], query, ...options });
      const { data, pagination, total } = await jsonOf<ListBatchesResponse>(response, ['data', 'pagination']);
      // Batches that were created meanwhile have moved earlier ones, whose ids are greater, onto this page.
      const items = before === undefined ? data : data.filter(({ id }) => id < before);
      const reached = pagination.offset + data.length;
      // A page of which every batch was read before does not begin the list again.
      const last = items.at(-1)?.id ?? before;
      return {
        items,
        total,
        limit: pagination.limit,
        next: data.length > 0 && reached < total ? () => page(reached, last) : null,
      };
    };
    return new Listing(() => page(params.offset ?? 0, undefined));
  }

  /** Creates one batch: at most 25,000 rows and 3,500,000 bytes. It may still be processing: see `wait`. */
  async create(batch: CreateBatchRequest, { idempotencyKey = randomUUID(), ...options }: CreateOptions = {}) {
    const response = await this.#send({ method: 'POST', path: ['batches'], json: batch, idempotencyKey, ...options });
    const { data, warnings = [] } = await jsonOf<CreateBatchResponse>(response);
    return { ...data, warnings } satisfies CreatedBatch as CreatedBatch;
  }

  /**
   * Creates as many batches as the rows need, one after another, and yields each. If one fails, or is rejected, for
   * example because the account has as many codes as its plan allows, the same call within 24 hours of the first
   * continues after the batches that exist already: with the same rows in the same order, the same fields, the same
   * `rowsPerBatch`, and the same `idempotencyKey` of at most 200 characters. To change any of these, pass the rows that
   * are in no batch yet, with a new key. Rows that were skipped stay skipped: pass them with a new key, too.
   */
  async *createAll(
    { rows, rowsPerBatch, ...batch }: CreateAllRequest,
    { idempotencyKey = randomUUID(), ...options }: CreateOptions = {},
  ): AsyncGenerator<CreatedBatch, void, void> {
    if (idempotencyKey === '') throw new SignpostError('The idempotency key must not be empty.');
    let part = 0;
    for (const some of splitRows(rows, { fields: batch, mostRows: rowsPerBatch })) {
      part++;
      const creating = this.#createPart({ ...batch, rows: some }, `${idempotencyKey}/${part}`, options);
      yield await creating.catch((error) => {
        // The caller repeats the call, and not the part.
        if (error instanceof SignpostError) error.idempotencyKey = idempotencyKey;
        throw error;
      });
    }
  }

  /**
   * Creates a batch. A rejection is stored with its key, so one that is replayed may no longer hold; it has created
   * nothing. The batch is sent again with the key `key.1`, `key.2`, and so on: every run reaches the same first one
   * that is not rejected.
   */
  async #createPart(batch: CreateBatchRequest, key: string, options: RequestOptions): Promise<CreatedBatch> {
    for (let rejections = 0; ; rejections++) {
      const idempotencyKey = rejections === 0 ? key : `${key}.${rejections}`;
      try {
        return await this.create(batch, { ...options, idempotencyKey });
      } catch (error) {
        if (rejections === MOST_REJECTIONS || !isReplay(error)) throw error;
      }
    }
  }

  async get(id: string, options: RequestOptions = {}): Promise<Batch> {
    const { rows: _some, ...batch } = (await this.#read(id, { limit: 1 }, options)).data;
    return batch;
  }

  /**
   * The rows of a batch in the order sent. `limit`: the page size, 1 to 1,000, which is the default here. `wait` before
   * you list those of one `status`: rows that change theirs between two pages make later ones move up, and be left out.
   */
  rows(
    id: string,
    params: { readonly status?: BatchRow['status']; readonly limit?: number; readonly offset?: number } = {},
    options: RequestOptions = {},
  ): Listing<BatchRow> {
    const page = async (offset: number): Promise<Page<BatchRow>> => {
      const { data, pagination, total } = await this.#read(id, { limit: 1_000, ...params, offset }, options);
      const reached = pagination.offset + data.rows.length;
      const more = data.rows.length > 0 && reached < total;
      return { items: data.rows, total, limit: pagination.limit, next: more ? () => page(reached) : null };
    };
    return new Listing(() => page(params.offset ?? 0));
  }

  /** Resolves when every row is created, failed or skipped. `signal` ends the waiting. */
  async wait(id: string, options: RequestOptions = {}): Promise<Batch> {
    for (let delay = WAIT_MS.first; ; delay = Math.min(2 * delay, WAIT_MS.longest)) {
      const batch = await this.get(id, options);
      if (batch.status === 'completed') return batch;
      await pause(delay, options.signal);
    }
  }

  async #read(id: string, query: Readonly<Record<string, unknown>>, options: RequestOptions) {
    const response = await this.#send({ method: 'GET', path: ['batches', id], query, ...options });
    return await jsonOf<GetBatchResponse>(response, ['data', 'pagination']);
  }
}

function isReplay(error: unknown): boolean {
  return error instanceof ApiError && error.headers.get('idempotent-replay') === 'true';
}
