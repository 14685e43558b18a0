import { Migration } from '@mikro-orm/migrations';

/** Indexes that make every page of a list of codes cost the same, however many codes other accounts have. */
export class ListedCodes extends Migration {
  override up(): void {
    this.addSql(`
      -- How many codes a list has in all, kept as they come and go: counting 100,000 takes longer than a page of them.
      alter table code_counts add column listed bigint not null default 0;
      update code_counts n
      set listed = (select count(*) from codes c where c.account_id = n.account_id and c.deleted_at is null);

      -- With an index on the id alone, a page of an account whose codes are old was read through everybody's newer ones:
      -- the planner takes the codes of an account to be spread evenly. Rows of codes are never deleted, so their tags
      -- need no key to hold on to.
      alter table code_tags drop constraint code_tags_code_id_fkey;
      alter table codes drop constraint codes_pkey, add primary key (account_id, id);
      -- Ascending, though they are read backwards: what comes is then added at their end, and not in the middle of pages
      -- that are split in halves. Of two indexes that cost the same the planner takes the younger one, so that a page
      -- never reads deleted codes.
      drop index codes_listed, codes_in_folder, code_tags_by_tag;
      create index codes_listed on codes (account_id, id) where deleted_at is null;
      create index codes_in_folder on codes (account_id, folder_id, id) where deleted_at is null;
      create index code_tags_by_tag on code_tags (tag_id, code_id);
    `);
  }
}
