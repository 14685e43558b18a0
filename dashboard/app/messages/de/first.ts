import type { FirstMessages } from '../index.ts';
import { charts } from './charts.ts';
import { common } from './common.ts';
import { overview } from './overview.ts';
import { shell } from './shell.ts';

export const first: FirstMessages = { charts, common, overview, shell };
