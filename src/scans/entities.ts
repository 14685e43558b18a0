import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { DIMENSIONS } from './dimensions.ts';

/** A recorded scan, in the partition of its month. */
export const ScanEntity = defineEntity({
  name: 'Scan',
  tableName: 'scans',
  properties: {
    id: p.uuid().primary(),
    scannedAt: p.datetime().primary(),
    accountId: p.uuid(),
    codeId: p.uuid(),
    kind: p.text().collation('C').check(`kind in ('person', 'bot', 'preview', 'prefetch')`),
    /** Version of the rules that determined kind, device, operating system and browser. */
    rules: p.smallint(),
    country: p.text().collation('C'),
    device: p.text().collation('C'),
    operatingSystem: p.text().collation('C'),
    browser: p.text().collation('C'),
    referrer: p.text().collation('C'),
    /** A keyed hash whose salt is destroyed after the day, or a random number. */
    visitor: p.bigint('bigint'),
    /** The version of the code's target that answered; null, as the following two, if it had never been changed. */
    targetVersion: p.integer().nullable(),
    /** The rule that decided, counted from 1; 0 if none did. */
    targetRule: p.smallint().nullable(),
    /** The label of the split's variant; empty if the rule has no split. */
    targetVariant: p.text().collation('C').nullable(),
  },
  indexes: [
    { name: 'scans_of_account', properties: ['accountId', 'scannedAt', 'id'] },
    { name: 'scans_of_code', properties: ['codeId', 'scannedAt', 'id'] },
  ],
});

export type ScanEntity = InferEntity<typeof ScanEntity>;

/** The salts of visitor hashes, in a table that is not in the write-ahead log. */
export const VisitorSaltEntity = defineEntity({
  name: 'VisitorSalt',
  tableName: 'visitor_salts',
  properties: { day: p.date().primary(), salt: p.blob() },
});

/** A visitor already counted for a code and day; deleted with the day's salt. */
export const ScanVisitorEntity = defineEntity({
  name: 'ScanVisitor',
  tableName: 'scan_visitors',
  properties: { day: p.date().primary(), codeId: p.uuid().primary(), visitor: p.bigint('bigint').primary() },
});

/** Lifetime scans of a code. */
export const ScanTotalEntity = defineEntity({
  name: 'ScanTotal',
  tableName: 'scan_totals',
  properties: { codeId: p.uuid().primary(), accountId: p.uuid(), scans: p.bigint('number') },
  indexes: [{ name: 'scan_totals_of_account', properties: ['accountId', 'codeId'] }],
});

export type ScanTotalEntity = InferEntity<typeof ScanTotalEntity>;

/** Scans of a code in a day, in UTC. */
export const ScanDayEntity = defineEntity({
  name: 'ScanDay',
  tableName: 'scan_days',
  properties: {
    codeId: p.uuid().primary(),
    day: p.date().primary(),
    accountId: p.uuid(),
    scans: p.bigint('number'),
    uniqueScans: p.bigint('number'),
  },
});

export type ScanDayEntity = InferEntity<typeof ScanDayEntity>;

/** Scans of a code in an hour. A visitor counts in the hour of the first scan of the day. */
export const ScanHourEntity = defineEntity({
  name: 'ScanHour',
  tableName: 'scan_hours',
  properties: {
    codeId: p.uuid().primary(),
    hour: p.datetime().primary(),
    accountId: p.uuid(),
    scans: p.bigint('number'),
    uniqueScans: p.bigint('number'),
  },
});

export type ScanHourEntity = InferEntity<typeof ScanHourEntity>;

/** Scans of a code in a day by one value of a dimension. */
export const ScanValueEntity = defineEntity({
  name: 'ScanValue',
  tableName: 'scan_values',
  properties: {
    codeId: p.uuid().primary(),
    day: p.date().primary(),
    dimension: p.enum(DIMENSIONS).nativeEnumName('scan_dimension').primary(),
    value: p.text().collation('C').primary(),
    accountId: p.uuid(),
    scans: p.bigint('number'),
  },
});

export type ScanValueEntity = InferEntity<typeof ScanValueEntity>;

/** Scans of a code in a day by the version of its target, the rule and the variant that decided. */
export const ScanTargetEntity = defineEntity({
  name: 'ScanTarget',
  tableName: 'scan_targets',
  properties: {
    codeId: p.uuid().primary(),
    day: p.date().primary(),
    version: p.integer().primary().autoincrement(false),
    rule: p.smallint().primary().autoincrement(false),
    variant: p.text().collation('C').primary(),
    accountId: p.uuid(),
    scans: p.bigint('number'),
  },
});

export type ScanTargetEntity = InferEntity<typeof ScanTargetEntity>;

/**
 * Scans of a code or an account in a week from Monday on (`days` is 7), or of an account in a day (1), without what is
 * in `scan_increments`. There may be several rows, which add up.
 */
export const ScanRollupEntity = defineEntity({
  name: 'ScanRollup',
  tableName: 'scan_rollups',
  properties: {
    id: p.bigint('string').primary().generated('identity'),
    /** The code or the account. */
    subjectId: p.uuid(),
    days: p.smallint().check('days in (1, 7)'),
    start: p.date(),
    accountId: p.uuid(),
    /** The scans of an account's day; 0 for other rows. */
    scans: p.bigint('number').defaultRaw('0'),
    uniqueScans: p.bigint('number').defaultRaw('0'),
    /** Each is the initial of a dimension followed by one of its values. */
    names: p.array().columnType('text[]').collation('C').defaultRaw(`'{}'`),
    /** Scans by each of the names. */
    counts: p.array().columnType('bigint[]').defaultRaw(`'{}'`),
  },
  indexes: [{ name: 'scan_rollups_of_subject', properties: ['subjectId', 'days', 'start'] }],
});

/** A change of the counters of a code's day, inserted by triggers, that is not folded into `scan_rollups` yet. */
export const ScanIncrementEntity = defineEntity({
  name: 'ScanIncrement',
  tableName: 'scan_increments',
  properties: {
    id: p.bigint('string').primary().generated('identity'),
    accountId: p.uuid(),
    codeId: p.uuid(),
    day: p.date(),
    scans: p.bigint('number').defaultRaw('0'),
    uniqueScans: p.bigint('number').defaultRaw('0'),
    names: p.array().columnType('text[]').collation('C').defaultRaw(`'{}'`),
    counts: p.array().columnType('bigint[]').defaultRaw(`'{}'`),
  },
  indexes: [{ name: 'scan_increments_of_code', properties: ['accountId', 'codeId'] }],
});

/** The figures that a run of a gateway reported about a day's scans; they only increase. */
export const ScanGatewayEntity = defineEntity({
  name: 'ScanGateway',
  tableName: 'scan_gateways',
  properties: {
    day: p.date().primary(),
    gateway: p.text().collation('C').primary(),
    answered: p.bigint('number'),
    lost: p.bigint('number'),
    published: p.bigint('number'),
  },
});

/** The outcomes of a day's records of a partition. Scans deleted on request are in partition -1. */
export const ScanLedgerEntity = defineEntity({
  name: 'ScanLedger',
  tableName: 'scan_ledger',
  properties: {
    day: p.date().primary(),
    partition: p.integer().primary(),
    recorded: p.bigint('number').defaultRaw('0'),
    duplicates: p.bigint('number').defaultRaw('0'),
    deadLettered: p.bigint('number').defaultRaw('0'),
    deleted: p.bigint('number').defaultRaw('0'),
  },
});

/** The next record of a partition of the topic; `topicId` is null if an earlier version has recorded it. */
export const ScanPositionEntity = defineEntity({
  name: 'ScanPosition',
  tableName: 'scan_positions',
  properties: {
    partition: p.integer().primary().autoincrement(false),
    position: p.bigint('string'),
    topicId: p.text().nullable(),
  },
});

/** A part of a month that was moved out of `scans`: to a separate table, or to a file once `file` is set. */
export const ScanArchiveEntity = defineEntity({
  name: 'ScanArchive',
  tableName: 'scan_archives',
  properties: {
    month: p.date().primary(),
    part: p.smallint().primary(),
    file: p.text().nullable(),
    scans: p.bigint('number'),
    archivedAt: p.datetime(),
  },
});

/** The ids of archived scans, 16 bytes each, in order, so that none is ever recorded again. */
export const ScanArchivedIdsEntity = defineEntity({
  name: 'ScanArchivedIds',
  tableName: 'scan_archived_ids',
  properties: {
    month: p.date().primary(),
    part: p.smallint().primary(),
    firstId: p.uuid().primary(),
    ids: p.blob(),
  },
});

/** An account whose scans were deleted. Archives made before `doneAt` contain none of its scans. */
export const ScanDeletionEntity = defineEntity({
  name: 'ScanDeletion',
  tableName: 'scan_deletions',
  properties: { accountId: p.uuid().primary(), askedAt: p.datetime(), doneAt: p.datetime().nullable() },
});
