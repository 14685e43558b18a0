import { Migration } from '@mikro-orm/migrations';

/** Domains are checked repeatedly, and belong to the account that verifies them first. */
export class DomainChecks extends Migration {
  override up(): void {
    this.addSql(`
      -- One sequence for all, so that a hostname's routes stay in order when it is removed and added anew.
      create sequence domain_versions;
      select setval('domain_versions', coalesce(max(version), 1)) from domains;

      alter table domains
        drop constraint domains_hostname_key,
        alter column version set default nextval('domain_versions'),
        add column problem text not null default '',
        add column state_since timestamptz not null default now(),
        add column first_live_at timestamptz,
        -- When it is due to be checked next.
        add column check_at timestamptz not null default now();
      comment on column domains.problem is 'What the last check found missing, as a sentence.';

      -- Anybody may try to prove a hostname, so that nobody can keep its owner out; one succeeds.
      create unique index domains_of_account on domains (hostname, account_id);
      create unique index domains_proven on domains (hostname) where state <> 'pending';
      create index domains_due on domains (check_at);
    `);
  }
}
