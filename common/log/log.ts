import type { Queryable } from '../postgres/sql.ts';
import { OperatorError } from '../runtime/operator-error.ts';

/**
 * The durable log: it carries scans from gateways to the recorder, and events and routes from the outbox to their
 * consumers. Two implementations, `kafka.ts` and `postgres.ts`, pass one suite (`log-suite.fixture.ts`).
 *
 * Delivery is at least once. Records with the same key keep their order. Consumers deduplicate by ids and versions.
 */
export interface Log {
  /**
   * Appends records; resolves once they are durable. Records of one call and key keep their order. Rejects if the
   * outcome is unknown: the caller then publishes again. With `RecordsTooLarge` one of the records is too large for the
   * topic, even by itself; it says how many before it were appended.
   */
  publish(topic: string, records: readonly NewRecord[]): Promise<void>;
  /**
   * Opens the publisher of a leader, which must hold a lock that is bound to the connection `over` (in the database of
   * the log, if the log is in Postgres). Fencing: once a leader that opened a publisher later under the same name has
   * appended to a partition, this one can't append to it any more, however long its process was suspended or its
   * records were in transit. The leader must read what it publishes after opening the publisher, over that connection.
   * After a failure the publisher is unusable, so it can't find out how many records at a time a topic accepts: after
   * `RecordsTooLarge`, fewer may succeed with a new publisher.
   */
  openFencedPublisher(name: string, over: Queryable): Promise<Publisher>;
  /**
   * Joins a consumer group: every record is delivered to one member, starting with the oldest retained one. Returns at
   * once and keeps retrying while the log is unavailable.
   */
  consume(options: ConsumeOptions): Subscription;
  /**
   * Follows a topic without a group: this follower receives every retained record from its positions on. Returns at
   * once and keeps retrying while the log is unavailable.
   */
  follow(options: FollowOptions): Subscription;
  /** The current end of the topic: the offset that the next record of each partition will have. */
  ends(topic: string): Promise<Positions>;
  /**
   * The offset of the first record of each partition appended at `time` (ms since 1970) or later; its end if there is
   * none.
   */
  since(topic: string, time: number): Promise<Positions>;
  /**
   * An id that distinguishes a topic from earlier and later ones of the same name, in which its positions are
   * meaningless.
   */
  identity(topic: string): Promise<string>;
  /**
   * Creates missing topics, after calling `creating` with their names and awaiting it, and checks existing ones.
   * Rejects with a TopicMismatch if one does not fit. In the Postgres log, this process also deletes expired records
   * from then on.
   */
  ensureTopics(topics: readonly Topic[], creating?: (missing: readonly string[]) => Promise<void>): Promise<void>;
  /** Rejects if the log is unavailable. */
  check(): Promise<void>;
  /** Stops all subscriptions, whose current batches are finished first, and closes the connections. */
  close(): Promise<void>;
}

export interface Publisher extends Pick<Log, 'publish'> {
  /** Closes it; records that are being published may or may not be appended. */
  close(): Promise<void>;
}

/** A record to append. */
export interface NewRecord {
  /** Determines the partition, and identifies the record for compaction. */
  readonly key: string;
  /** Null is a tombstone on compacted topics. */
  readonly value: Uint8Array | null;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A record that was read. */
export interface LogRecord {
  readonly key: string;
  readonly value: Uint8Array | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly partition: number;
  readonly offset: bigint;
  /** When it was appended, in ms since 1970. */
  readonly timestamp: number;
}

/** Partition → offset of the next record. For a missing partition it is the oldest retained record. */
export type Positions = ReadonlyMap<number, bigint>;

export interface ConsumeOptions {
  readonly topic: string;
  readonly group: string;
  /**
   * Handles records of one partition in order. They are committed once it resolves; if it rejects they are delivered
   * again: with a `ReadAgain` at once and with earlier ones, otherwise after a pause. `from`: where they were read; the
   * log has no records between it and the first one. `topicId`: the topic's `identity`, or for the first seconds after
   * a topic was replaced that of the former one.
   */
  handle(records: readonly LogRecord[], from: bigint, topicId: string): Promise<void>;
  /** The maximum number of records in one call. Default 5,000. */
  readonly maxRecords?: number;
  /** The number of partitions handled concurrently. Default 3. */
  readonly partitionsAtOnce?: number;
  /** Called with errors after which the subscription retries. */
  onError?(error: unknown): void;
}

export interface FollowOptions {
  readonly topic: string;
  /** The positions to start from; empty means the oldest retained record. */
  readonly from: Positions;
  /** Handles records of one partition in order. If it rejects they are delivered again after a pause. */
  handle(records: readonly LogRecord[]): Promise<void> | void;
  /**
   * Called when a partition has no records between the position and its end, `end`, as in the log in Postgres after a
   * restore has raised it. If it rejects it is called again after a pause.
   */
  onGap?(partition: number, end: bigint): Promise<void> | void;
  /** The number of partitions handled concurrently. Default 3. */
  readonly partitionsAtOnce?: number;
  /** Called with errors after which the subscription retries. */
  onError?(error: unknown): void;
}

export interface Subscription {
  /** Finishes and commits the current batch, and stops. */
  stop(): Promise<void>;
}

/** A handler needs the records of its partition again, from the offset `from` on, although they were committed. */
export class ReadAgain extends Error {
  readonly from: bigint;

  constructor(from: bigint) {
    super(`records are read again from ${from} on`);
    this.from = from;
  }
}

/** A topic does not accept a record because of its size, or records of a fenced publisher because of their sum. */
export class RecordsTooLarge extends Error {
  /** How many records the topic has accepted; it refuses the next one. */
  readonly accepted: number;

  constructor(message: string, accepted: number, cause?: unknown) {
    super(message, { cause });
    this.accepted = accepted;
  }
}

/** An existing topic is configured to retain less than needed, which only the operator of the log can fix. */
export class TopicMismatch extends OperatorError {}

/** A topic as Signpost needs it. */
export interface Topic {
  readonly name: string;
  /** The number of partitions at creation; an existing topic may have more. */
  readonly partitions: number;
  /** `compact` keeps the newest record of each key for ever; a number keeps every record that many ms. */
  readonly retention: 'compact' | number;
}
