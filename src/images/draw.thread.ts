import { answerInThread } from '../contract/thread.ts';
import { drawn } from './drawing.ts';

answerInThread(drawn);
