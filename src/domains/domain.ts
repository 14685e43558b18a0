import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { encodeId } from '../../common/contract/ids.ts';
import { DOMAIN_STATE_BY_NAME, type DomainStateName } from '../../common/contract/names.ts';
import { type Domain, DomainSchema } from '../../proto/gen/signpost/domains/v1/domains_pb.ts';

/** A custom domain of an account. */
export const DomainEntity = defineEntity({
  name: 'Domain',
  tableName: 'domains',
  properties: {
    id: p.uuid().primary(),
    accountId: p.uuid(),
    hostname: p.text(),
    state: p.text().$type<DomainStateName>(),
    /** What its TXT record has to hold; no secret, as everybody can read the record. */
    token: p.text(),
    /** Comes from one sequence, so that the newest route of a hostname is the highest, whoever it belongs to. */
    version: p.bigint('number'),
    /** What its last check found missing, as a sentence. */
    problem: p.text(),
    stateSince: p.datetime(),
    firstLiveAt: p.datetime().nullable(),
    checkAt: p.datetime(),
    createdAt: p.datetime().onCreate(() => new Date()),
  },
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
    state: DOMAIN_STATE_BY_NAME[state],
    txtName: txtName(hostname),
    txtValue: txtValue(token),
    problem,
    createdAt: timestampFromDate(createdAt),
  });
}
