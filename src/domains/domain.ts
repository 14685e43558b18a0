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
    /** What its TXT record has to hold; no secret, as everybody can read the record. */
    token: p.text(),
    /** Comes from one sequence, so that the newest route of a hostname is the highest, whoever it belongs to. */
    version: p.bigint('number').defaultRaw(`nextval('domain_versions'::regclass)`).ignoreSchemaChanges('default'),
    /** What its last check found missing, as a sentence. */
    problem: p.text().default('').comment('What the last check found missing, as a sentence.'),
    stateSince: p.datetime().defaultRaw('now()'),
    firstLiveAt: p.datetime().nullable(),
    /** When it is due to be checked next. */
    checkAt: p.datetime().defaultRaw('now()'),
    createdAt: p
      .datetime()
      .onCreate(() => new Date())
      .defaultRaw('now()'),
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

/** Where the TXT record of a hostname belongs, and what it has to hold. */
export const txtName = (hostname: string) => `_signpost.${hostname}`;
export const txtValue = (token: string) => `signpost-verify=${token}`;

/** The domain as the contract has it. */
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
