import { createConnectTransport } from '@connectrpc/connect-web';

/** Calls the core's services through the dashboard's server, which adds the account, the member and the token. */
export const transport = createConnectTransport({ baseUrl: '/rpc' });
