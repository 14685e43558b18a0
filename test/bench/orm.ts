/**
 * What one code costs a core's CPU to read, insert and change: through the ORM as the library is, through the ORM with
 * bound values as Signpost runs it, and by a named statement.
 *
 *   npm run bench:orm
 *
 * One connection, one call at a time, interleaved rounds; figures are those of the cheapest round, as others on the
 * machine make rounds dearer and never cheaper, in µs of CPU of this process for a call.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { raw } from '@mikro-orm/core';
import { MikroORM, PostgreSqlDriver } from '@mikro-orm/postgresql';
import { newUuid } from '../../common/contract/ids.ts';
import { first, run, statement, transaction } from '../../common/postgres/sql.ts';
import { startPostgres } from '../../local/postgres.ts';
import { CodeEntity } from '../../src/codes/entities.ts';
import { newShortCode } from '../../src/codes/short-code.ts';
import { columnsOf, listed } from '../../src/db/columns.ts';
import { openDatabase, ormOptions } from '../../src/db/database.ts';
import { entityManagerIn, ormTransaction } from '../../src/db/orm-transaction.ts';
import { entities } from '../../src/entities.ts';

const ROUNDS = 9;
const CALLS = 500;

await using running = new AsyncDisposableStack();
const folder = await mkdtemp(join(tmpdir(), 'signpost-bench-'));
running.defer(() => rm(folder, { recursive: true, force: true }));
const postgres = await startPostgres({ folder });
running.defer(() => postgres.stop());
const { orm, pool, migrate, close } = await openDatabase(postgres.url, 2, entities);
running.defer(close);
await migrate();
const library = await MikroORM.init({ ...ormOptions(postgres.url, entities), driver: PostgreSqlDriver });
running.defer(() => library.close());

const accountId = newUuid();
await pool.query(`insert into accounts (id, name, plan) values ($1, 'Bench', 'business')`, [accountId]);

const columns = listed(columnsOf(CodeEntity));
const read = statement('bench_read', `select ${columns} from codes where account_id = $1 and id = $2`);
const insert = statement(
  'bench_insert',
  `insert into codes (account_id, id, type, short_code, payload) values ($1, $2, 'static', $3, $4)`,
);
const update = statement(
  'bench_update',
  'update codes set name = $3, version = version + 1 where account_id = $1 and id = $2',
);

const ids: string[] = [];
const some = () => ids[Math.floor(Math.random() * ids.length)] ?? '';
const payload = 'https://example.com/a/target/of/usual/length?utm_source=table';
const fresh = () => {
  const id = newUuid();
  ids.push(id);
  return { accountId, id, type: 'static' as const, shortCode: newShortCode(), payload };
};
for (let nth = 0; nth < 1_000; nth++) {
  const { id, shortCode } = fresh();
  await run(pool, insert, [accountId, id, shortCode, payload]);
}
const version = () => raw('version + 1');
const changed = () => ({ name: 'Menu', version: version() });

/** Each kind of call by the ways to make it. */
const CALL: Record<string, Record<string, () => Promise<unknown>>> = {
  'read one': {
    'the library': () => library.em.fork().findOne(CodeEntity, { accountId, id: some() }),
    'bound values': () => orm.em.fork().findOne(CodeEntity, { accountId, id: some() }),
    'a named statement': () => first(pool, read, [accountId, some()]),
  },
  'insert one': {
    'the library': () => library.em.fork().insert(CodeEntity, fresh() as never),
    'bound values': () => orm.em.fork().insert(CodeEntity, fresh() as never),
    'a named statement': () => {
      const { id, shortCode } = fresh();
      return run(pool, insert, [accountId, id, shortCode, payload]);
    },
  },
  'change one': {
    'the library': () => library.em.fork().nativeUpdate(CodeEntity, { accountId, id: some() }, changed()),
    'bound values': () => orm.em.fork().nativeUpdate(CodeEntity, { accountId, id: some() }, changed()),
    'a named statement': () => run(pool, update, [accountId, some(), 'Menu']),
  },
  'a transaction around one read': {
    'the library': () => library.em.fork().transactional((em) => em.findOne(CodeEntity, { accountId, id: some() })),
    'bound values': () => ormTransaction(orm, (em) => em.findOne(CodeEntity, { accountId, id: some() })),
    'a named statement': () => transaction(pool, (tx) => first(tx, read, [accountId, some()])),
  },
  'an entity manager that is not used': {
    'bound values': () => transaction(pool, async (tx) => void entityManagerIn(orm, tx)),
    'a named statement': () => transaction(pool, async () => undefined),
  },
};

/** µs of CPU of this process for a call. */
async function cost(call: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  for (let nth = 0; nth < CALLS; nth++) await call();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / CALLS;
}

for (const [kind, ways] of Object.entries(CALL)) {
  const figures = new Map<string, number[]>(Object.keys(ways).map((way) => [way, []]));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [way, call] of Object.entries(ways)) {
      const µs = await cost(call);
      // The first round warms up.
      if (round > 0) figures.get(way)?.push(µs);
    }
  }
  const least = [...figures].map(([way, all]) => `${way} ${Math.min(...all).toFixed(0)}`);
  console.log(`${kind}: ${least.join(', ')} µs`);
}
