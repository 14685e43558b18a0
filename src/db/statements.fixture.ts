import { Client } from 'pg';
import { vi } from 'vitest';

/** The statements that are run while `work` is. */
export async function statementsOf(
  work: () => Promise<unknown>,
): Promise<{ name?: string; text: string; values?: unknown[] }[]> {
  const query = vi.spyOn(Client.prototype, 'query');
  await work();
  const calls = query.mock.calls.map(
    ([what]) => what as unknown as { name?: string; text: string; values?: unknown[] },
  );
  query.mockRestore();
  return calls;
}
