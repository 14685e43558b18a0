import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { MikroORM, PostgreSqlDriver } from '@mikro-orm/postgresql';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { AccountEntity } from '../../src/access/entities.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { errorForLog } from './logger.ts';

let pool: pg.Pool;
let orm: MikroORM;
beforeAll(async () => {
  const { url } = await freshDatabase();
  pool = new pg.Pool({ connectionString: url });
  orm = await MikroORM.init({ driver: PostgreSqlDriver, clientUrl: url, entities: [AccountEntity] });
});
afterAll(async () => {
  await orm.close();
  await pool.end();
});

const SECRET = 'anna@example.com';
const ID = '01890a5d-ac96-774b-bcce-b302099a8057';

async function thrownBy(call: Promise<unknown>): Promise<Error> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof Error)) throw new Error('the call succeeded');
  return error;
}

test.each<[string, () => Promise<unknown>]>([
  ['an invalid value', () => pool.query('select $1::uuid', [SECRET])],
  [
    'a row that violates a constraint',
    () => pool.query(`insert into accounts (id, name, plan) values ($1, $2, 'x')`, [ID, SECRET]),
  ],
  [
    'a duplicate row',
    async () => {
      const insert = 'insert into accounts (id, name, plan) values ($1, $2, $3)';
      await pool.query(insert, [ID, SECRET, 'free']);
      await pool.query(insert, [ID, SECRET, 'free']);
    },
  ],
  [
    'a statement of the ORM',
    () => orm.em.fork().insert(AccountEntity, { id: ID, name: SECRET, plan: SECRET as 'free' }),
  ],
  ['a search of the ORM', () => orm.em.fork().findOne(AccountEntity, { id: SECRET })],
])('the log of an error about %s has its type, code and place, and no value', async (_, call) => {
  const error = await thrownBy(call());
  const serialized = errorForLog(new Error('outer', { cause: error }));
  expect(serialized).toMatchObject({
    cause: {
      code: expect.stringMatching(/^2[23]/),
      message: expect.stringMatching(/\S/),
      stack: expect.stringContaining('at '),
    },
  });
  expect(JSON.stringify(serialized)).not.toContain('anna');
  expect(JSON.stringify(serialized)).not.toContain(ID);
});

test('any other error keeps its message', () => {
  expect(errorForLog(new TypeError('x is no y'))).toMatchObject({ type: 'TypeError', message: 'x is no y' });
  expect(errorForLog(SECRET)).toEqual({ type: 'string' });
});

test.each([
  ['info', 'x'.repeat(500_000)],
  // The line is below the level.
  ['warn', ''],
])('a process of level %s that kills itself has written its last line', async (level, line) => {
  const program = `
    const { openLogger, flushLog } = await import('./common/runtime/logger.ts');
    const logger = openLogger('${level}', {});
    // More than a pipe takes at once.
    logger.info('x'.repeat(500_000));
    await flushLog(logger);
    process.kill(process.pid, 'SIGKILL');`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const log = await text(child.stdout);
  expect(log === '' ? '' : JSON.parse(log).msg).toBe(line);
});
