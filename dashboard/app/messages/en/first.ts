import { charts } from './charts.ts';
import { common } from './common.ts';
import { overview } from './overview.ts';
import { shell } from './shell.ts';

/** Texts of the frame and the first page. */
export const first = { charts, common, overview, shell };
