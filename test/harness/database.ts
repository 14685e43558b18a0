import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { inject } from 'vitest';
import { afterFile } from './after-file.ts';

/** A migrated, empty database of the calling file's own; it is dropped after the file's tests, connections and all. */
export async function freshDatabase(): Promise<{ url: string }> {
  const template = new URL(inject('templateUrl'));
  const name = `test_${randomBytes(8).toString('hex')}`;
  await asOwner(template, `create database ${name} template ${template.pathname.slice(1)}`);
  afterFile(() => asOwner(template, `drop database if exists ${name} with (force)`));
  const url = new URL(template);
  url.pathname = `/${name}`;
  return { url: url.href };
}

async function asOwner(template: URL, statement: string): Promise<void> {
  const url = new URL(template);
  // A template must have no connections, so the statement runs beside it.
  url.pathname = '/postgres';
  const client = new Client({ connectionString: url.href });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
