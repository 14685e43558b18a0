import type { Interceptor } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-web';
import { setServerTime } from './clock.ts';
import { checkSession } from './queries.ts';
import { openAnew, shownSession } from './session.ts';

/**
 * Names the account and the member that the page shows. If another tab has opened another account since, or another
 * person has signed in, the server rejects the call, and the page is loaded anew; until then the call stays open, so
 * that nothing repeats it. If the person stays on the page, it fails. Not an interceptor, which would find what marks
 * such an answer in one place for streams and in another one for other calls.
 */
async function fetchForShownSession(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  const shown = shownSession();
  if (shown) {
    headers.set('signpost-shown-account', shown.account.id);
    headers.set('signpost-shown-member', shown.member.id);
  }
  const response = await fetch(input, { ...init, headers });
  setServerTime(response);
  if (!response.headers.has('signpost-account-changed')) return response;
  await openAnew();
  // It says that the page must be loaded anew.
  return response;
}

const watchSession: Interceptor = (next) => async (request) => {
  try {
    return await next(request);
  } catch (error) {
    checkSession(error);
    throw error;
  }
};

const OPTIONS = { baseUrl: '/rpc', fetch: fetchForShownSession, interceptors: [watchSession] };

/** Calls the core's services through the dashboard's server, which adds the account, the member and the token. */
export const transport = createConnectTransport(OPTIONS);

/** The same for large messages and files: half the bytes of JSON, in which bytes are base64. */
export const binaryTransport = createConnectTransport({ ...OPTIONS, useBinaryFormat: true });
