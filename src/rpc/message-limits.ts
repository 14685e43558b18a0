import type { DescMethod } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { MAX_ROWS_BYTES, messageTooLarge } from '../../common/contract/limits.ts';
import { ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import { Cost } from '../../proto/gen/signpost/access/v1/requirements_pb.ts';
import { checkedByMessage } from '../access/interceptor.ts';
import { requirementsOf, standardService } from '../access/requirements.ts';
import { asFailure } from '../calls/as-failure.ts';

/** Size limit of a request message. */
export interface MessageLimit {
  /** Bytes, on the wire and decompressed. */
  readonly bytes: number;
  /** Fields, those of nested messages included; in JSON, values. */
  readonly values: number;
  /** Whether messages may be so large that only a few are read at a time. */
  readonly isQueued: boolean;
}

/**
 * For anyone: the name of a service or file for health and reflection, or a rejection by a gateway (at most about 4
 * KB).
 */
const OPEN: MessageLimit = { bytes: 8 * 1024, values: 1_000, isQueued: false };

/** A REST body of at most 1 MiB and the gateway's additions. */
const ORDINARY: MessageLimit = { bytes: 2 * 1024 * 1024, values: 10_000, isQueued: false };

/**
 * A batch of 3,500,000 bytes of JSON with some margin: such a body contains at most 1,166,667 values of three bytes
 * each. Empty rows take two bytes of a message: 8 KB compressed were 4.2 million rows, 400 MB and seconds of CPU.
 */
const LARGE: MessageLimit = { bytes: MAX_ROWS_BYTES, values: 1_200_000, isQueued: true };

/** An error of reading a message within `limit`, as one of the catalogue. */
export function readingFailure(error: unknown, { bytes }: MessageLimit): ConnectError {
  const isOfLibrary = error instanceof ConnectError && error.findDetails(ErrorInfoSchema).length === 0;
  // The libraries use this code only for messages over the limit.
  if (isOfLibrary && error.code === Code.ResourceExhausted) return messageTooLarge(bytes, error);
  return asFailure(error);
}

/** The largest message that any method reads, in bytes. */
export const MAX_MESSAGE_BYTES = LARGE.bytes;

/** The limit for a method's requests: only methods that charge by row accept rows. */
export function limitOf(method: DescMethod): MessageLimit {
  if (standardService(method) !== undefined || checkedByMessage(method)) return OPEN;
  return requirementsOf(method).cost === Cost.PER_HUNDRED_ROWS ? LARGE : ORDINARY;
}
