import { randomBytes } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { Client, DatabaseError } from 'pg';
import { inject } from 'vitest';
import { afterFile } from './after-file.ts';

/** SQLSTATEs of a database with connections, and of missing privileges. */
const OBJECT_IN_USE = '55006';
const INSUFFICIENT_PRIVILEGE = '42501';

/**
 * Creates an empty database for the calling file, without tables unless it is `migrated`, which is the default; it is
 * dropped after the file's tests, with its connections.
 */
export async function freshDatabase({ migrated = true } = {}): Promise<{ url: string }> {
  const template = new URL(inject('templateUrl'));
  const name = `test_${randomBytes(8).toString('hex')}`;
  await asOwner(template, `create database ${name} template ${migrated ? template.pathname.slice(1) : 'template0'}`);
  afterFile(() => drop(template, name));
  const url = new URL(template);
  url.pathname = `/${name}`;
  return { url: url.href };
}

/**
 * Postgres waits 5 s for connections to close before it fails. By force it would end those that a pool has just ended
 * and that are about to close, each with an error that nobody listens for any more.
 */
async function drop(template: URL, name: string): Promise<void> {
  try {
    await asOwner(template, `drop database if exists ${name}`);
  } catch (error) {
    if (!isDatabaseError(error, OBJECT_IN_USE)) throw error;
    await dropByForce(template, name);
  }
}

/** Retries while autovacuum works in the database: its process belongs to the superuser and cannot be terminated. */
async function dropByForce(template: URL, name: string): Promise<void> {
  for (let attemptsLeft = 20; ; attemptsLeft--) {
    try {
      await asOwner(template, `drop database if exists ${name} with (force)`);
      return;
    } catch (error) {
      if (attemptsLeft === 0 || !isDatabaseError(error, INSUFFICIENT_PRIVILEGE)) throw error;
      await setTimeout(500);
    }
  }
}

function isDatabaseError(error: unknown, code: string): boolean {
  return error instanceof DatabaseError && error.code === code;
}

async function asOwner(template: URL, statement: string): Promise<void> {
  const url = new URL(template);
  // A template must have no connections, so the statement runs in another database.
  url.pathname = '/postgres';
  const client = new Client({ connectionString: url.href });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
