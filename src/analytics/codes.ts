/** The codes of something that groups them. */
export type Group = { readonly folder: string } | { readonly tag: string } | { readonly batch: string };

/**
 * What analytics asks of the rooms that own codes and what groups them; ids are UUIDs. They count nothing, and
 * analytics knows no code.
 */
export interface Codes {
  /** Whether the account has this code, not deleted. */
  exists(accountId: string, codeId: string): Promise<boolean>;
  /** The codes of a folder, a tag or a batch, each once; undefined when the account has no such thing. */
  of(accountId: string, group: Group): Promise<readonly string[] | undefined>;
  /** How codes of the account are called, deleted ones too. */
  labels(
    accountId: string,
    codeIds: readonly string[],
  ): Promise<ReadonlyMap<string, { readonly shortCode: string; readonly name: string | null }>>;
}
