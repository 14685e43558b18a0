import { Batches } from './batches.ts';
import { Codes } from './codes.ts';
import { createTransport, jsonOf, type RequestOptions, type Send, type SignpostOptions } from './transport.ts';
import type { Folder, ListFoldersResponse, ListTagsResponse, Tag } from './types.gen.ts';

export type { CreateAllRequest, CreatedBatch } from './batches.ts';
export type { CreatedCode, ImageParams, ListCodesParams } from './codes.ts';
export * from './errors.ts';
export type { Listing, Page } from './listing.ts';
export type { CreateOptions, RequestOptions, SignpostOptions } from './transport.ts';
export type * from './types.gen.ts';

/** A client of the Signpost API. */
export class Signpost {
  readonly codes: Codes;
  readonly batches: Batches;
  /** Folders, by name. A folder is created by naming it on a code. */
  readonly folders: { list(options?: RequestOptions): Promise<Folder[]> };
  /** Tags, by name. A tag is created by naming it on a code. */
  readonly tags: { list(options?: RequestOptions): Promise<Tag[]> };
  readonly #send: Send;

  constructor(options: SignpostOptions = {}) {
    const send = createTransport(options);
    this.#send = send;
    this.codes = new Codes(send);
    this.batches = new Batches(send);
    this.folders = {
      async list(options = {}) {
        const response = await send({ method: 'GET', path: ['folders'], ...options });
        return (await jsonOf<ListFoldersResponse>(response)).data;
      },
    };
    this.tags = {
      async list(options = {}) {
        const response = await send({ method: 'GET', path: ['tags'], ...options });
        return (await jsonOf<ListTagsResponse>(response)).data;
      },
    };
  }

  /** The OpenAPI document of the service. */
  async openapi(options: RequestOptions = {}): Promise<Record<string, unknown>> {
    const response = await this.#send({ method: 'GET', path: ['openapi'], ...options });
    return await jsonOf<Record<string, unknown>>(response, ['paths']);
  }
}
