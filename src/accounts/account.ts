import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { failure } from '../../common/contract/errors.ts';
import { encodeId } from '../../common/contract/ids.ts';
import { PLAN_BY_NAME } from '../../common/contract/names.ts';
import {
  type Account as AccountMessage,
  AccountSchema,
  type Overrides,
} from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import type { AccountEntity } from '../access/entities.ts';

/** Trims the name of an account, whose length the proto file constrains. Fails with INVALID_FIELD. */
export function readName(input: string): string {
  const name = input.trim();
  if (name === '') throw failure('INVALID_FIELD', 'name: is required.');
  if (/\p{Cc}/u.test(name)) throw failure('INVALID_FIELD', 'name: must be one line without control characters.');
  return name;
}

/** The override columns of an account's row; null where nothing is overridden. */
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

export function accountMessage(account: AccountEntity): AccountMessage {
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
