import { handleThreadRequests } from '../../common/runtime/thread.ts';
import { parseBatch } from './batch-body.ts';

handleThreadRequests(parseBatch, (read) => ('rows' in read ? [read.rows.buffer as ArrayBuffer] : []));
