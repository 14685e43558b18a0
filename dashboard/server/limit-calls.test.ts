import { EventEmitter } from 'node:events';
import { Code } from '@connectrpc/connect';
import type { FastifyReply } from 'fastify';
import { beforeEach, expect, test } from 'vitest';
import { limitCalls } from './limit-calls.ts';
import type { Session } from './session.ts';

let begin: ReturnType<typeof limitCalls>;
beforeEach(() => {
  begin = limitCalls();
});

/** Begins a call, of a person who has signed in with a link. Returns a function that ends it, or the error's code. */
function call(account: string, member: string): (() => void) | Code {
  const raw = new EventEmitter();
  const error = begin({ account, member } as Session, { raw } as unknown as FastifyReply);
  return error?.code ?? (() => raw.emit('close'));
}

/** The number of such calls that may be running beside those that are. */
function room(account: string, member: string): number {
  const ends: (() => void)[] = [];
  for (;;) {
    const end = call(account, member);
    if (typeof end === 'function') {
      ends.push(end);
      continue;
    }
    expect(end).toBe(Code.ResourceExhausted);
    for (const each of ends) each();
    return ends.length;
  }
}

test('a person may run 50 calls at a time', () => {
  const ends = Array.from({ length: 20 }, () => call('acct_a', 'mbr_1'));
  expect(room('acct_a', 'mbr_1')).toBe(30);
  for (const end of ends) if (typeof end === 'function') end();
  expect(room('acct_a', 'mbr_1')).toBe(50);
});

test('the members of an account may run 150 calls at a time, which does not limit those of others', () => {
  for (const member of ['mbr_1', 'mbr_2']) for (let n = 0; n < 50; n++) call('acct_a', member);
  const ends = Array.from({ length: 40 }, () => call('acct_a', 'mbr_3'));
  expect(room('acct_a', 'mbr_4')).toBe(10);
  expect(room('acct_b', 'mbr_5')).toBe(50);
  for (const end of ends) if (typeof end === 'function') end();
  expect(room('acct_a', 'mbr_4')).toBe(50);
});
