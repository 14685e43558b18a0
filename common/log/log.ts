import type { Queryable } from '../postgres/sql.ts';
import { OperatorError } from '../runtime/operator-error.ts';

/**
 * The log that everything durable travels on: scans from gateways to the recorder, events and routes from the outbox
 * to whoever listens. Two implementations, `kafka.ts` and `postgres.ts`, pass one suite (`conformance.ts`).
 *
 * Delivery is at least once. Records of one key keep their order. Consumers decide by ids and versions.
 */
export interface Log {
  /**
   * Appends records; resolves when the log has them durably. Records of one call and key keep their order. Rejects
   * when that can't be known: the caller publishes again.
   */
  publish(topic: string, records: readonly NewRecord[]): Promise<void>;
  /**
   * Opens the publisher of a leader: of whoever holds a lock that lives as long as the connection `over`, in the
   * database of the log where that is in Postgres. Once a leader who opened one later under the same name has appended to
   * a partition, this one appends nothing more to it, however long its process stood still or its records were on their
   * way. What it appends has to be read after it was opened, over that connection. After a failure it is of no use.
   */
  lead(name: string, over: Queryable): Promise<Publisher>;
  /**
   * Joins a consumer group: every record goes to one of its members, from the oldest kept on. Returns at once and
   * keeps trying while the log is away.
   */
  consume(options: ConsumeOptions): Subscription;
  /**
   * Follows a topic without a group: this follower sees every record that is still kept, from where it says. Returns
   * at once and keeps trying while the log is away.
   */
  follow(options: FollowOptions): Subscription;
  /** Where the topic ends now: the offset that the next record of each partition will have. */
  ends(topic: string): Promise<Positions>;
  /** Where what was appended at `time` (ms since 1970) or later begins; its end in a partition that has nothing of it. */
  since(topic: string, time: number): Promise<Positions>;
  /** Tells a topic from others that had its name before it, or will have: positions in one mean nothing in another. */
  identity(topic: string): Promise<string>;
  /**
   * Creates the topics that are missing, once `creating` was told their names and has resolved, and checks the ones that
   * exist. Rejects with a WrongTopic when one does not fit. Where no server does it, this process from then on deletes
   * what topics need not keep.
   */
  ensureTopics(topics: readonly Topic[], creating?: (missing: readonly string[]) => Promise<void>): Promise<void>;
  /** Rejects when the log does not answer. */
  check(): Promise<void>;
  /** Leaves groups, ends followers and connections. Batches in hand are finished first. */
  close(): Promise<void>;
}

export interface Publisher extends Pick<Log, 'publish'> {
  /** Ends it; records in hand may or may not be appended. */
  close(): Promise<void>;
}

/** A record to append. */
export interface NewRecord {
  /** Decides the partition, and what compaction keeps one of. */
  readonly key: string;
  /** Null is a tombstone on compacted topics. */
  readonly value: Uint8Array | null;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A record as it is read. */
export interface LogRecord {
  readonly key: string;
  readonly value: Uint8Array | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly partition: number;
  readonly offset: bigint;
  /** When it was appended, in ms since 1970. */
  readonly timestamp: number;
}

/** Partition → offset of the next record. A partition that is missing stands at its oldest kept record. */
export type Positions = ReadonlyMap<number, bigint>;

export interface ConsumeOptions {
  readonly topic: string;
  readonly group: string;
  /**
   * Handles records of one partition in their order. The group moves past them only when it resolves; when it rejects
   * they come again after a pause.
   */
  handle(records: readonly LogRecord[]): Promise<void>;
  /** The most records in one call. Default 5,000. */
  readonly maxRecords?: number;
  /** Partitions that are handled at a time. Default 3. */
  readonly partitionsAtOnce?: number;
  /** Told of failures that the subscription survives. */
  onError?(error: unknown): void;
}

export interface FollowOptions {
  readonly topic: string;
  /** Where to go on; empty means from the oldest kept record. */
  readonly from: Positions;
  /** Handles records of one partition in their order. When it rejects they come again after a pause. */
  handle(records: readonly LogRecord[]): Promise<void> | void;
  /** Told of failures that the subscription survives. */
  onError?(error: unknown): void;
}

export interface Subscription {
  /** Finishes the batch in hand, commits it, and leaves. */
  stop(): Promise<void>;
}

/** A topic exists and does not keep what is needed: a sentence for who runs the log. Waiting does not mend it. */
export class WrongTopic extends OperatorError {}

/** A topic as Signpost needs it. */
export interface Topic {
  readonly name: string;
  /** Partitions when it is created; an existing topic may have more. */
  readonly partitions: number;
  /** `compact` keeps the newest record of each key for ever; a number keeps every record that many ms. */
  readonly retention: 'compact' | number;
}
