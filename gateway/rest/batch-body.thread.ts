import { handleThreadRequests } from '../../common/runtime/thread.ts';
import { batchIn } from './batch-body.ts';

handleThreadRequests(batchIn, (read) => ('rows' in read ? [read.rows.buffer as ArrayBuffer] : []));
