import { defineEntity, p } from '@mikro-orm/core';

/** A hostname that was ever verified and never serves the codes of another account. The row outlives the domain. */
export const VerifiedHostnameEntity = defineEntity({
  name: 'VerifiedHostname',
  tableName: 'verified_hostnames',
  properties: {
    hostname: p.text().collation('C').primary(),
    /** The last account that verified it; no foreign key, as it outlives the account. */
    accountId: p.uuid(),
  },
});
