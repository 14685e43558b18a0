import { Code, ConnectError } from '@connectrpc/connect';
import type { FastifyReply } from 'fastify';
import { limitAtOnce } from '../../common/queues/limit-at-once.ts';
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
  const beginOfPerson = limitAtOnce(MAX_CALLS);
  const beginOfAccount = limitAtOnce(MAX_ACCOUNT_CALLS);

  return (session, reply) => {
    const endOfPerson = beginOfPerson(personOf(session));
    if (!endOfPerson) return tooMany(MAX_CALLS, 'person');
    const endOfAccount = beginOfAccount(session.account);
    if (!endOfAccount) {
      endOfPerson();
      return tooMany(MAX_ACCOUNT_CALLS, 'account');
    }
    const end = () => {
      endOfPerson();
      endOfAccount();
    };
    // If the browser gave up during admission, no event will end the call.
    if (reply.raw.destroyed) end();
    else reply.raw.once('close', end);
    return undefined;
  };
}

function tooMany(most: number, whose: 'person' | 'account'): ConnectError {
  return new ConnectError(`At most ${most} calls of one ${whose} may be running.`, Code.ResourceExhausted);
}
