import { expect, onTestFinished, test } from 'vitest';
import { newUuid } from '../../../common/contract/ids.ts';
import { freshDatabase } from '../../../test/harness/database.ts';
import { entities } from '../../entities.ts';
import { openDatabase } from '../database.ts';

test.each(['folders', 'tags'])(
  '%s whose names become equal are numbered, the oldest keeps its name',
  async (labels) => {
    const database = await openDatabase((await freshDatabase()).url, 3, entities);
    onTestFinished(() => database.close());
    const { pool } = database;
    // As the version before left it.
    await pool.query(`delete from migrations where name = '0018-folded-names'`);
    for (const each of ['folders', 'tags']) {
      await pool.query(`
      drop index ${each}_name;
      create unique index ${each}_name on ${each} (account_id, lower(name collate "pg_c_utf8"))`);
    }
    const [account, other] = [newUuid(), newUuid()];
    for (const id of [account, other]) {
      await pool.query(`insert into accounts (id, name, plan) values ($1, 'Test', 'business')`, [id]);
    }
    const long = 'ß'.repeat(100);
    const names = [
      'STRASSE (2)',
      'Straße',
      'STRASSE',
      'K\u00e4se',
      'Ka\u0308se',
      'strasSe ',
      long,
      `${'ß'.repeat(99)}ss`,
    ];
    for (const [index, name] of names.entries()) {
      const id = `00000000-0000-7000-8000-00000000000${index}`;
      await pool
        .query(`insert into ${labels} (id, account_id, name) values ($1, $2, $3)`, [id, account, name.trim()])
        .catch((error) => {
          // "strasSe" was equal before, too.
          if (name !== 'strasSe ') throw error;
        });
    }
    await pool.query(`insert into ${labels} (id, account_id, name) values ($1, $2, 'STRASSE')`, [newUuid(), other]);

    await database.migrate();

    const { rows } = await pool.query(`select name from ${labels} where account_id = $1 order by id`, [account]);
    expect(rows.map(({ name }) => name)).toEqual([
      'STRASSE (2)',
      'Straße',
      'STRASSE (3)',
      'Käse',
      'Ka\u0308se (2)',
      long,
      `${'ß'.repeat(90)} (2)`,
    ]);
    const { rows: others } = await pool.query(`select name from ${labels} where account_id = $1`, [other]);
    expect(others).toEqual([{ name: 'STRASSE' }]);
  },
);
