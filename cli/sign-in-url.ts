import { OperatorError } from '../common/runtime/operator-error.ts';
import { configured } from '../common/runtime/read-configured-file.ts';

/**
 * The address of a sign-in link. The token is in the fragment, which browsers do not send: it is in no log of a server
 * or proxy, and programs that preview links do not use it up.
 */
export function signInUrl(base: URL, token: string): string {
  return `${base.href.replace(/\/$/, '')}/sign-in/link#${token}`;
}

/** `DASHBOARD_URL`, by default a dashboard on this machine. Throws an `OperatorError` if it is not an address. */
export function dashboardUrl(env: NodeJS.ProcessEnv): URL {
  const url = URL.parse(
    configured(env, 'DASHBOARD_URL') || `http://localhost:${configured(env, 'DASHBOARD_PORT') || 8090}`,
  );
  if (url && /^https?:$/.test(url.protocol) && !url.search && !url.hash) return url;
  throw new OperatorError('DASHBOARD_URL must be an http or https address, such as https://signpost.example.');
}
