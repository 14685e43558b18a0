import { createConnectTransport } from '@connectrpc/connect-web';

/** Calls the core's services through the dashboard's server, which adds the account, the member and the token. */
export const transport = createConnectTransport({ baseUrl: '/rpc' });

/** The same for large messages and files: half the bytes of JSON, in which bytes are base64. */
export const binaryTransport = createConnectTransport({ baseUrl: '/rpc', useBinaryFormat: true });
