import { answerInThread } from '../../common/runtime/thread.ts';
import { drawn } from './drawing.ts';

answerInThread(drawn);
