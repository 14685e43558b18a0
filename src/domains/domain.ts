import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { encodeId } from '../../common/contract/ids.ts';
import { DOMAIN_STATE_BY_NAME, type DomainStateName } from '../../common/contract/names.ts';
import { type Domain, DomainSchema } from '../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { accountOfRow } from '../access/entities.ts';

/** A custom domain of an account. */
export const DomainEntity = defineEntity({
  name: 'Domain',
  tableName: 'domains',
  properties: {
    id: p.uuid().primary(),
    accountId: accountOfRow('domains'),
    hostname: p.text(),
    state: p
      .text()
      .$type<DomainStateName>()
      .default('pending')
      .check(`state in ('pending', 'verified', 'live', 'failing')`),
    /** The value that its TXT record must contain; not a secret, as the record is public. */
    token: p.text(),
    /** That of its newest route in releases up to 1.0. Nothing reads it. */
    version: p.bigint('number').defaultRaw(`nextval('domain_versions'::regclass)`).ignoreSchemaChanges('default'),
    /** What its last check found missing, as a sentence. */
    problem: p.text().default('').comment('What the last check found missing, as a sentence.'),
    stateSince: p.datetime().defaultRaw('now()'),
    firstLiveAt: p.datetime().nullable(),
    /** When its next check is due. */
    checkAt: p.datetime().defaultRaw('now()'),
    createdAt: p.datetime().defaultRaw('now()'),
  },
  uniques: [{ name: 'domains_of_account', properties: ['hostname', 'accountId'] }],
  indexes: [
    { name: 'domains_due', properties: ['checkAt'] },
    {
      name: 'domains_proven',
      expression: `create unique index domains_proven on domains (hostname) where state <> 'pending'`,
    },
  ],
});

export type DomainEntity = InferEntity<typeof DomainEntity>;

/** Name and value of the TXT record that proves ownership of a hostname. */
export const txtName = (hostname: string) => `_signpost.${hostname}`;
export const txtValue = (token: string) => `signpost-verify=${token}`;

/** The domain as a message of the RPC API. */
export function domainMessage({ id, hostname, state, token, problem, createdAt }: DomainEntity): Domain {
  return create(DomainSchema, {
    id: encodeId('domain', id),
    hostname,
    state: DOMAIN_STATE_BY_NAME[state as DomainStateName],
    txtName: txtName(hostname),
    txtValue: txtValue(token),
    problem,
    createdAt: timestampFromDate(createdAt),
  });
}
