import { handleThreadRequests } from '../../common/runtime/thread.ts';
import { drawSync } from './drawing.ts';

handleThreadRequests(drawSync);
