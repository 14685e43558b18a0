import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { encodeId } from '../../common/contract/ids.ts';
import { PLAN_BY_NAME, type PlanName } from '../../common/contract/names.ts';
import {
  type Account as AccountMessage,
  AccountSchema,
  type Overrides,
} from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';

/** An account. What is null comes from the plan. */
export const Account = defineEntity({
  name: 'Account',
  tableName: 'accounts',
  properties: {
    id: p.uuid().primary(),
    name: p.text(),
    plan: p.text().$type<PlanName>(),
    monthlyQuota: p.bigint('number').nullable(),
    codeLimit: p.bigint('number').nullable(),
    batchLimit: p.integer().nullable(),
    featureApi: p.boolean().nullable(),
    featureBulk: p.boolean().nullable(),
    featureImages: p.boolean().nullable(),
    createdAt: p.datetime().onCreate(() => new Date()),
    closedAt: p.datetime().nullable(),
    deleteData: p.boolean().default(false),
    /** See `clear.ts`. */
    clearAt: p.datetime().nullable(),
  },
});

export type Account = InferEntity<typeof Account>;

/** Overrides as an account keeps them; what is not overridden is null. */
export function overrideColumns(overrides: Overrides | undefined) {
  return {
    monthlyQuota: overrides?.monthlyQuota === undefined ? null : Number(overrides.monthlyQuota),
    codeLimit: overrides?.codeLimit === undefined ? null : Number(overrides.codeLimit),
    batchLimit: overrides?.batchLimit ?? null,
    featureApi: overrides?.api ?? null,
    featureBulk: overrides?.bulk ?? null,
    featureImages: overrides?.images ?? null,
  };
}

export function accountMessage(account: Account): AccountMessage {
  const { monthlyQuota, codeLimit, batchLimit, featureApi, featureBulk, featureImages, closedAt } = account;
  return create(AccountSchema, {
    id: encodeId('acct', account.id),
    name: account.name,
    plan: PLAN_BY_NAME[account.plan],
    overrides: {
      ...(monthlyQuota == null ? {} : { monthlyQuota: BigInt(monthlyQuota) }),
      ...(codeLimit == null ? {} : { codeLimit: BigInt(codeLimit) }),
      ...(batchLimit == null ? {} : { batchLimit }),
      ...(featureApi == null ? {} : { api: featureApi }),
      ...(featureBulk == null ? {} : { bulk: featureBulk }),
      ...(featureImages == null ? {} : { images: featureImages }),
    },
    createdAt: timestampFromDate(account.createdAt),
    ...(closedAt == null ? {} : { closedAt: timestampFromDate(closedAt) }),
  });
}
