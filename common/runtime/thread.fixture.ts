import { handleThreadRequests } from './thread.ts';

/** Returns each request. */
handleThreadRequests((request: unknown) => request);
