import { Code, ConnectError } from '@connectrpc/connect';
import { type FirstMessages, useFirstMessages } from '../messages/index.ts';
import { errorInfo } from './error-reason.ts';
import { fieldErrors } from './field-errors.ts';
import { isFileMissing } from './missing-files.ts';
import { isTemporary } from './queries.ts';
import type { RoleName } from './session.ts';

/** Explains a failed call: in the reader's language where the pages know more, else in the core's own sentence. */
export function useErrorText(): (error: unknown) => string {
  const messages = useFirstMessages();
  return (error) => errorText(error, messages);
}

export function errorText(error: unknown, { common, shell }: FirstMessages): string {
  const { reason = '', metadata = {} } = errorInfo(error) ?? {};
  const known = common.reasons[reason];
  if (known) return known(metadata);
  // Signpost is available: the account has as many streams open as it can have.
  if (reason === 'UNAVAILABLE' && metadata.limit !== undefined) return common.tooManyCalls;
  if (isTemporary(error) || isFileMissing(error)) return common.unavailable;
  const connectError = ConnectError.from(error);
  if (reason === 'ROLE_REQUIRED') {
    const role = metadata.role ?? 'owner';
    return common.notAllowed(shell.roles[role as RoleName] ?? role);
  }
  if (connectError.code === Code.DeadlineExceeded) return common.unavailable;
  // Of the dashboard's server; the core always gives a reason.
  if (connectError.code === Code.ResourceExhausted && reason === '') return common.tooManyCalls;
  const [sentence] = fieldErrors(error, common.invalid).values();
  return sentence ?? connectError.rawMessage;
}
