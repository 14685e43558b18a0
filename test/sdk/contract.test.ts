import { describe } from 'vitest';
import { sendThrough } from '../contract/client.ts';
import { callThroughSdk } from './call-through-sdk.ts';

/** The contract tests again, with every request that the TypeScript SDK can send sent by it. */

sendThrough(callThroughSdk);

const FILES = ['access', 'batches', 'create-code', 'labels', 'list-codes', 'one-code', 'other-types', 'read'];

for (const file of FILES) {
  describe(file, async () => {
    await import(`../contract/${file}.test.ts`);
  });
}
