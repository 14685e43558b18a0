import type { Pool } from 'pg';
import { newUuid } from '../../common/contract/ids.ts';
import type { PlanName } from '../../common/contract/names.ts';

interface InsertedAccount {
  readonly id?: string;
  readonly plan?: PlanName;
}

/** Inserts a row for an account, by default of a new id and in the plan `business`. Returns its UUID. */
export async function insertAccount(
  on: Pick<Pool, 'query'>,
  { id = newUuid(), plan = 'business' }: InsertedAccount = {},
): Promise<string> {
  await on.query(`insert into accounts (id, name, plan) values ($1, 'Test', $2)`, [id, plan]);
  return id;
}
