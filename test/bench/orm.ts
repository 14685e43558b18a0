/**
 * The CPU time of reading, inserting and changing one code: through the unmodified ORM, through the ORM with bound
 * values as in Signpost, and with a named statement.
 *
 *   npm run bench:orm
 *
 * One connection, one call at a time, interleaved rounds. Figures are those of the cheapest round, as other load on the
 * machine only makes rounds more expensive, in µs of this process's CPU time per call.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { raw } from '@mikro-orm/core';
import { MikroORM, PostgreSqlDriver } from '@mikro-orm/postgresql';
import { newUuid } from '../../common/contract/ids.ts';
import { first, run, statement, transaction } from '../../common/postgres/sql.ts';
import { startPostgres } from '../../local/postgres.ts';
import { newShortCode } from '../../src/codes/create/short-code.ts';
import { CodeEntity } from '../../src/codes/entities.ts';
import { columnsOf, listed } from '../../src/db/columns.ts';
import { openDatabase, ormOptions } from '../../src/db/database.ts';
import { entityManagerIn, ormTransaction } from '../../src/db/orm-transaction.ts';
import { entities } from '../../src/entities.ts';
import { insertAccount } from '../harness/insert-account.ts';

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

const accountId = await insertAccount(pool);

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
const anyId = () => ids[Math.floor(Math.random() * ids.length)] ?? '';
const payload = 'https://example.com/a/target/of/usual/length?utm_source=table';
const newCode = () => {
  const id = newUuid();
  ids.push(id);
  return { accountId, id, type: 'static' as const, shortCode: newShortCode(), payload };
};
for (let index = 0; index < 1_000; index++) {
  const { id, shortCode } = newCode();
  await run(pool, insert, [accountId, id, shortCode, payload]);
}
const version = () => raw('version + 1');
const changed = () => ({ name: 'Menu', version: version() });

/** The calls to compare, by operation and variant. */
const CALLS_TO_COMPARE: Record<string, Record<string, () => Promise<unknown>>> = {
  'read one': {
    'the library': () => library.em.fork().findOne(CodeEntity, { accountId, id: anyId() }),
    'bound values': () => orm.em.fork().findOne(CodeEntity, { accountId, id: anyId() }),
    'a named statement': () => first(pool, read, [accountId, anyId()]),
  },
  'insert one': {
    'the library': () => library.em.fork().insert(CodeEntity, newCode() as never),
    'bound values': () => orm.em.fork().insert(CodeEntity, newCode() as never),
    'a named statement': () => {
      const { id, shortCode } = newCode();
      return run(pool, insert, [accountId, id, shortCode, payload]);
    },
  },
  'change one': {
    'the library': () => library.em.fork().nativeUpdate(CodeEntity, { accountId, id: anyId() }, changed()),
    'bound values': () => orm.em.fork().nativeUpdate(CodeEntity, { accountId, id: anyId() }, changed()),
    'a named statement': () => run(pool, update, [accountId, anyId(), 'Menu']),
  },
  'a transaction around one read': {
    'the library': () => library.em.fork().transactional((em) => em.findOne(CodeEntity, { accountId, id: anyId() })),
    'bound values': () => ormTransaction(orm, (em) => em.findOne(CodeEntity, { accountId, id: anyId() })),
    'a named statement': () => transaction(pool, (tx) => first(tx, read, [accountId, anyId()])),
  },
  'an entity manager that is not used': {
    'bound values': () => transaction(pool, async (tx) => void entityManagerIn(orm, tx)),
    'a named statement': () => transaction(pool, async () => undefined),
  },
};

/** The CPU time of this process per call, in µs. */
async function cost(call: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  for (let index = 0; index < CALLS; index++) await call();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / CALLS;
}

for (const [kind, variants] of Object.entries(CALLS_TO_COMPARE)) {
  const figures = new Map<string, number[]>(Object.keys(variants).map((variant) => [variant, []]));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [variant, call] of Object.entries(variants)) {
      const µs = await cost(call);
      // The first round warms up.
      if (round > 0) figures.get(variant)?.push(µs);
    }
  }
  const least = [...figures].map(([variant, all]) => `${variant} ${Math.min(...all).toFixed(0)}`);
  console.log(`${kind}: ${least.join(', ')} µs`);
}
