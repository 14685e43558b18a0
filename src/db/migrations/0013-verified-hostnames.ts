import { create, toBinary } from '@bufbuild/protobuf';
import { Migration } from '@mikro-orm/migrations';
import { encodeId } from '../../../common/contract/ids.ts';
import { RouteSchema } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';

interface Unpublished {
  hostname: string;
  account_id: string;
  version: string;
  removed: boolean;
}

/** Hostnames stay with the account that verified them last, even after their domain was removed. */
export class VerifiedHostnames extends Migration {
  override async up(): Promise<void> {
    await this.execute(`
      create table verified_hostnames (
        hostname text collate "C" primary key,
        -- The last account that verified it; no reference, as accounts come and go.
        account_id uuid not null
      )`);
    // A core of the previous version could take a domain's version before this migration and commit after it.
    await this.execute('lock table domains in exclusive mode');
    await this.execute(`
      insert into verified_hostnames select hostname, account_id from domains where state <> 'pending'`);
    // Codes are only created on verified domains, so they show most of the removed ones.
    await this.execute(`
      insert into verified_hostnames
      select distinct on (hostname) hostname, account_id from codes where hostname is not null
      order by hostname, created_at desc
      on conflict do nothing`);
    // Gateways know the other hostnames, which are or were live.
    const unpublished = await this.execute(`
      select h.hostname, h.account_id, nextval('domain_versions') as version, d.id is null as removed
      from verified_hostnames h left join domains d on d.hostname = h.hostname and d.state <> 'pending'
      where d.first_live_at is null`);
    for (const { hostname, account_id, version, removed } of unpublished as unknown as Unpublished[]) {
      const value = { hostname, accountId: encodeId('acct', account_id), failing: !removed, removed };
      const route = create(RouteSchema, { version: BigInt(version), entry: { case: 'host', value } });
      await this.execute(`insert into outbox (topic, key, value) values ('signpost.routes.v1', ?, ?)`, [
        `host:${hostname}`,
        Buffer.from(toBinary(RouteSchema, route)),
      ]);
    }
  }
}
