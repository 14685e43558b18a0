import { runThreadInBackground } from '../../../common/runtime/run-in-background.ts';
import { handleThreadRequests } from '../../../common/runtime/thread.ts';
import { parseBatch } from './parse-batch.ts';

runThreadInBackground();
handleThreadRequests(parseBatch, (read) => ('rows' in read ? [read.rows.buffer as ArrayBuffer] : []));
