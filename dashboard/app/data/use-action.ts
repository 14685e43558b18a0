import {
  create,
  type DescMessage,
  type DescMethodUnary,
  equals,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf';
import { useMutation } from '@connectrpc/connect-query';
import { useRef } from 'react';
import { useErrorText } from './error-text.ts';
import { isResultUnknown } from './idempotency-key.ts';
import { refreshServices } from './queries.ts';
import { showToast } from './toasts.ts';

/** A change that the person can make. */
export interface Action<Input, Output> {
  /**
   * Makes the change; then everything shown of its service is loaded again. Rejects if the core refuses. The same input
   * again while it is being sent, as of Enter pressed twice, makes no second change.
   */
  readonly run: (input: Input) => Promise<Output>;
  readonly isPending: boolean;
  /** The same at this moment: `isPending` is that of the last rendering, which may be older than the call. */
  readonly isRunning: () => boolean;
  /** Why the last try failed, in the reader's language. */
  readonly error: string | undefined;
  readonly reset: () => void;
}

/**
 * `errors`: where a failure is shown, `toast` or by the caller, from `error`. `unknown`: what is said if the change may
 * have been made although its call failed, for one that must not be made twice or whose answer is needed.
 */
export function useAction<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  { errors = 'toast', done, unknown }: { errors?: 'toast' | 'caller'; done?: string; unknown?: string } = {},
): Action<MessageInitShape<I>, MessageShape<O>> {
  const errorText = useErrorText();
  const textOf = (failure: unknown) => (isResultUnknown(failure) && unknown) || errorText(failure);
  const { mutateAsync, isPending, error, reset } = useMutation(method, {
    onSuccess() {
      if (done !== undefined) showToast(done);
      void refreshServices(method.parent);
    },
    onError(failure) {
      if (isResultUnknown(failure)) void refreshServices(method.parent);
      if (errors === 'toast') showToast(textOf(failure), { kind: 'failed' });
    },
  });
  const sent = useRef<{ readonly input: MessageShape<I>; readonly output: Promise<MessageShape<O>> }>(undefined);
  const run = (init: MessageInitShape<I>) => {
    const input = create(method.input, init);
    if (sent.current && equals(method.input, sent.current.input, input)) return sent.current.output;
    const output = mutateAsync(init).finally(() => {
      if (sent.current?.output === output) sent.current = undefined;
    });
    sent.current = { input, output };
    return output;
  };
  const isRunning = () => isPending || sent.current !== undefined;
  return { run, isPending, isRunning, error: error ? textOf(error) : undefined, reset };
}
