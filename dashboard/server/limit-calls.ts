import { Code, ConnectError } from '@connectrpc/connect';
import type { FastifyReply } from 'fastify';
import { personOf, type Session } from './session.ts';

/**
 * The most calls of one person at a time, over all sessions, as a person may sign in any number of times. A page makes
 * about ten, and browsers open six connections over HTTP/1.1.
 */
const MAX_CALLS = 50;

/** The most calls of one account at a time: each has a connection to the core, which all accounts share. */
const MAX_ACCOUNT_CALLS = 150;

/**
 * Returns a function that counts a call until its answer has ended, or returns an error if its person or account has
 * too many.
 */
export function limitCalls(): (session: Session, reply: FastifyReply) => ConnectError | undefined {
  const persons = runningCalls();
  const accounts = runningCalls();

  return (session, reply) => {
    const person = personOf(session);
    const { account } = session;
    if (persons.of(person) >= MAX_CALLS) return tooMany(MAX_CALLS, 'person');
    if (accounts.of(account) >= MAX_ACCOUNT_CALLS) return tooMany(MAX_ACCOUNT_CALLS, 'account');
    // The browser gave up during admission: no event would end the call.
    if (reply.raw.destroyed) return undefined;
    persons.add(person, 1);
    accounts.add(account, 1);
    reply.raw.once('close', () => {
      persons.add(person, -1);
      accounts.add(account, -1);
    });
    return undefined;
  };
}

/** The number of running calls, by what they are limited by. */
function runningCalls() {
  const running = new Map<string, number>();
  const of = (key: string) => running.get(key) ?? 0;
  return {
    of,
    add(key: string, calls: 1 | -1) {
      const sum = of(key) + calls;
      if (sum > 0) running.set(key, sum);
      else running.delete(key);
    },
  };
}

function tooMany(most: number, whose: 'person' | 'account'): ConnectError {
  return new ConnectError(`At most ${most} calls of one ${whose} may be running.`, Code.ResourceExhausted);
}
