/** A page of a list. */
export interface Page<Item> {
  readonly items: Item[];
  /** All items that match; of codes, whose pages after the first are read by cursor, from this page onwards. */
  readonly total: number;
  /** The page size used. */
  readonly limit: number;
  /** The page after this one; null on the last page. */
  readonly next: (() => Promise<Page<Item>>) | null;
}

/** A list that is read page by page while you iterate: `for await (const item of listing)`. */
export class Listing<Item> implements AsyncIterable<Item> {
  readonly #first: () => Promise<Page<Item>>;

  constructor(first: () => Promise<Page<Item>>) {
    this.#first = first;
  }

  /** The first page alone. */
  page(): Promise<Page<Item>> {
    return this.#first();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, void> {
    for (let next: Page<Item>['next'] = this.#first; next; ) {
      const page: Page<Item> = await next();
      yield* page.items;
      next = page.next;
    }
  }
}
