import { afterFile } from './after-file.ts';
import { openTcpProxy, type TcpProxy } from './open-tcp-proxy.ts';

/** Starts a proxy for the server of a URL; it is stopped after the calling file's tests. */
export async function startTcpProxy(target: string): Promise<TcpProxy> {
  const proxy = await openTcpProxy(target);
  afterFile(async () => proxy.close());
  return proxy;
}
