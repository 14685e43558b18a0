import type { first as en } from '../en/first.ts';
import { charts } from './charts.ts';
import { common } from './common.ts';
import { overview } from './overview.ts';
import { shell } from './shell.ts';

export const first: typeof en = { charts, common, overview, shell };
