import type { DescMethod } from '@bufbuild/protobuf';
import { Caller, Cost } from '../../proto/gen/signpost/access/v1/requirements_pb.ts';
import { checkedByMessage } from '../access/interceptor.ts';
import { requirementsOf } from '../access/requirements.ts';

/** How large a request message may be. */
export interface MessageLimit {
  /** Bytes, on the wire and decompressed. */
  readonly bytes: number;
  /** Fields, those of nested messages included; in JSON, values. */
  readonly values: number;
  /** Whether such a message is large enough that only few may be read at a time. */
  readonly inTurn: boolean;
}

/** What anybody may send: the name of a service to health, or what a gateway refuses (at most some 4 KB). */
const OPEN: MessageLimit = { bytes: 8 * 1024, values: 1_000, inTurn: false };

/** A REST body of at most 1 MiB and what the gateway adds to it. */
const ORDINARY: MessageLimit = { bytes: 2 * 1024 * 1024, values: 10_000, inTurn: false };

/**
 * A batch of 3,500,000 bytes of JSON with room to spare: such a body holds at most 1,166,667 values, three bytes each.
 * Empty ones take two bytes of a message: 8 KB compressed were 4.2 million rows, 400 MB and seconds of CPU.
 */
const LARGE: MessageLimit = { bytes: 8 * 1024 * 1024, values: 1_200_000, inTurn: true };

/** The largest message that any method reads, in bytes. */
export const MAX_MESSAGE_BYTES = LARGE.bytes;

/** The limit of a method's requests: only methods that charge by the row take rows. */
export function limitOf(method: DescMethod): MessageLimit {
  const { caller, cost } = requirementsOf(method);
  if (caller === Caller.ANYONE || checkedByMessage(method)) return OPEN;
  return cost === Cost.PER_HUNDRED_ROWS ? LARGE : ORDINARY;
}
