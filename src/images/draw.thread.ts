import { handleThreadRequests } from '../../common/runtime/thread.ts';
import { drawn } from './drawing.ts';

handleThreadRequests(drawn);
