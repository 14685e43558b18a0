import { randomUUID } from 'node:crypto';
import { Listing, type Page } from './listing.ts';
import { type CreateOptions, imageOf, jsonOf, type RequestOptions, type Send } from './transport.ts';
import type {
  Analytics,
  Code,
  CreateCodeRequest,
  CreateCodeResponse,
  DeleteCodeResponse,
  DeletedCode,
  GetCodeAnalyticsResponse,
  GetCodeResponse,
  ListCodesResponse,
  UpdateCodeRequest,
  UpdateCodeResponse,
} from './types.gen.ts';

export interface ListCodesParams {
  /** The page size: 1 to 100; default 25. */
  readonly limit?: number;
  /** The number of codes to skip. Ignored with `cursor`. */
  readonly offset?: number;
  /** Continues where an earlier list ended. Iterating does this by itself. */
  readonly cursor?: string;
  /** Folder id or name; `none`: only codes without a folder. */
  readonly folder?: string;
  /** Tag ids or names: codes with any of them. */
  readonly tag?: string | readonly string[];
}

export interface ImageParams {
  /** Default: `png`. */
  readonly format?: 'png' | 'svg';
  /** Width and height of a PNG in pixels: 128 to 4,096; default 512. */
  readonly size?: number;
}

/** A new code. */
export interface CreatedCode extends Code {
  /** One sentence for each reason why a label could not be applied. */
  readonly warnings: readonly string[];
}

/** QR codes. */
export class Codes {
  readonly #send: Send;

  constructor(send: Send) {
    this.#send = send;
  }

  /** The codes of the account, newest first. */
  list(params: ListCodesParams = {}, options: RequestOptions = {}): Listing<Code> {
    const page = async (query: ListCodesParams): Promise<Page<Code>> => {
      const response = await this.#send({ method: 'GET', path: ['qr-codes'], query: { ...query }, ...options });
      const { data, pagination, total } = await jsonOf<ListCodesResponse>(response, ['data', 'pagination']);
      const { limit, next_cursor } = pagination;
      const next = next_cursor === null ? null : () => page({ ...query, cursor: next_cursor });
      return { items: data, total, limit, next };
    };
    return new Listing(() => page(params));
  }

  /** Creates a dynamic code. Safe to retry: see `idempotencyKey`. */
  async create(code: CreateCodeRequest, { idempotencyKey = randomUUID(), ...options }: CreateOptions = {}) {
    const response = await this.#send({ method: 'POST', path: ['qr-codes'], json: code, idempotencyKey, ...options });
    const { data, warnings = [] } = await jsonOf<CreateCodeResponse>(response);
    return { ...data, warnings } satisfies CreatedCode as CreatedCode;
  }

  async get(id: string, options: RequestOptions = {}): Promise<Code> {
    const response = await this.#send({ method: 'GET', path: ['qr-codes', id], ...options });
    return (await jsonOf<GetCodeResponse>(response)).data;
  }

  /** Changes the given fields alone. The print stays valid. */
  async update(id: string, changes: UpdateCodeRequest, options: RequestOptions = {}): Promise<Code> {
    const response = await this.#send({ method: 'PATCH', path: ['qr-codes', id], json: changes, ...options });
    return (await jsonOf<UpdateCodeResponse>(response)).data;
  }

  /** Scans of a deleted code reach a "no longer active" page. */
  async delete(id: string, options: RequestOptions = {}): Promise<DeletedCode> {
    const response = await this.#send({ method: 'DELETE', path: ['qr-codes', id], ...options });
    // Deleted by an attempt whose response was lost.
    if (response.status === 404) return { id, deleted: true };
    return (await jsonOf<DeleteCodeResponse>(response)).data;
  }

  /** The scans of a code. `period`: days of the breakdowns, 1 to 365; default 30. */
  async analytics(id: string, params: { readonly period?: number } = {}, options: RequestOptions = {}) {
    const response = await this.#send({
      method: 'GET',
      path: ['qr-codes', id, 'analytics'],
      query: params,
      ...options,
    });
    return (await jsonOf<GetCodeAnalyticsResponse>(response)).data satisfies Analytics;
  }

  /** The image of a code: the bytes of a PNG or SVG file. */
  async image(id: string, params: ImageParams = {}, options: RequestOptions = {}): Promise<Uint8Array<ArrayBuffer>> {
    const query = { ...params };
    const response = await this.#send({ method: 'GET', path: ['qr-codes', id, 'image'], query, ...options });
    return await imageOf(response);
  }
}
