import { answerInThread } from '../../common/runtime/thread.ts';
import { batchIn } from './batch-body.ts';

answerInThread(batchIn, (read) => ('rows' in read ? [read.rows.buffer as ArrayBuffer] : []));
