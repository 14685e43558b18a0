import { Code, ConnectError } from '@connectrpc/connect';
import type { FastifyReply } from 'fastify';
import { personOf, type Session } from './session.ts';

/**
 * The most calls of one person at a time, over all sessions, as a person may sign in any number of times. A page makes
 * about ten, and browsers open six connections over HTTP/1.1.
 */
const MAX_CALLS = 50;

/** Returns a function that counts a call until its answer has ended, or returns an error if its person has too many. */
export function limitCalls(): (session: Session, reply: FastifyReply) => ConnectError | undefined {
  /** The number of running calls, by person. */
  const running = new Map<string, number>();

  return (session, reply) => {
    const person = personOf(session);
    const calls = running.get(person) ?? 0;
    if (calls >= MAX_CALLS) {
      return new ConnectError(`At most ${MAX_CALLS} calls of one person may be running.`, Code.ResourceExhausted);
    }
    // The browser gave up during admission: no event would end the call.
    if (reply.raw.destroyed) return undefined;
    running.set(person, calls + 1);
    reply.raw.once('close', () => {
      const rest = (running.get(person) ?? 1) - 1;
      if (rest > 0) running.set(person, rest);
      else running.delete(person);
    });
    return undefined;
  };
}
