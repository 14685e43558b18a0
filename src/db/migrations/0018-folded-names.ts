import { Migration } from '@mikro-orm/migrations';

/** Names of folders and tags are unique by NFC and full Unicode case folding; before, by simple lower case. */
export class FoldedNames extends Migration {
  override up(): void {
    for (const labels of ['folders', 'tags']) {
      this.addSql(`
        -- Of names that become equal, the oldest keeps its spelling; the others get a number: "STRASSE (2)".
        do $$
        declare
          label record;
          number integer;
        begin
          for label in
            select l.id, l.account_id, l.name from ${labels} l
            where exists (
              select from ${labels} older
              where older.account_id = l.account_id and older.id < l.id
                and ${folded('older.name')} = ${folded('l.name')}
            )
            order by l.id
          loop
            number := 2;
            while exists (
              select from ${labels} other
              where other.account_id = label.account_id
                and ${folded('other.name')} = ${folded(`(left(label.name, 90) || ' (' || number || ')')`)}
            ) loop
              number := number + 1;
            end loop;
            update ${labels} set name = left(label.name, 90) || ' (' || number || ')' where id = label.id;
          end loop;
        end $$;
        drop index ${labels}_name;
        create unique index ${labels}_name on ${labels} (account_id, (${folded('name')}));
      `);
    }
  }
}

function folded(name: string): string {
  return `normalize(casefold(normalize(${name}, nfc) collate "pg_unicode_fast"), nfc)`;
}
