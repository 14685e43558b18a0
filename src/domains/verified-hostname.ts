import { defineEntity, p } from '@mikro-orm/core';

/** A hostname that was ever verified, which serves the codes of no other account. It outlives the domain. */
export const VerifiedHostnameEntity = defineEntity({
  name: 'VerifiedHostname',
  tableName: 'verified_hostnames',
  properties: {
    hostname: p.text().collation('C').primary(),
    /** The last account that verified it; refers to nothing, as accounts come and go. */
    accountId: p.uuid(),
  },
});
