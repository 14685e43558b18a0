import { Code, ConnectError } from '@connectrpc/connect';
import { useRef } from 'react';
import { reasonOf } from './error-reason.ts';
import { isTemporary } from './queries.ts';

/** Hands out the keys with which the core recognises a repeated call. */
export interface IdempotencyKeys {
  /** The key for a body: the same one while the result of an earlier call with it is unknown. */
  keyFor(body: string): string;
  /** Records how a call ended. After a definite failure the next call is a new one. */
  ended(error?: unknown): void;
}

/** A form's idempotency keys: sending what was typed again after a failed connection creates nothing twice. */
export function useIdempotencyKeys(): IdempotencyKeys {
  const last = useRef<{ body: string; key: string }>(undefined);
  return {
    keyFor(body) {
      if (last.current?.body !== body) last.current = { body, key: crypto.randomUUID() };
      return last.current.key;
    },
    ended(error) {
      if (!isResultUnknown(error)) last.current = undefined;
    },
  };
}

/** Whether a failed call may have had its effect, or may still have it. */
export function isResultUnknown(error: unknown): boolean {
  if (error === undefined) return false;
  const { code } = ConnectError.from(error);
  return (
    isTemporary(error) ||
    code === Code.DeadlineExceeded ||
    code === Code.Canceled ||
    reasonOf(error) === 'IDEMPOTENCY_KEY_IN_FLIGHT'
  );
}
