import { Account } from '../accounts/account.ts';

/** Every entity of the rooms. */
export const entities = [Account];
