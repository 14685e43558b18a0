import { answerInThread } from '../../src/contract/thread.ts';
import { batchIn } from './batch-body.ts';

answerInThread(batchIn, (read) => ('rows' in read ? [read.rows.buffer as ArrayBuffer] : []));
