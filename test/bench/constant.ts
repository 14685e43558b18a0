/** The baseline for Node: every request is answered with the same redirect. */
import { createServer } from 'node:http';

createServer((_request, response) => {
  response
    .writeHead(302, {
      location: 'https://example.com/menu?table=4',
      'cache-control': 'no-store',
      'content-length': '0',
    })
    .end();
}).listen(Number(process.argv[2]), '127.0.0.1', () => process.send?.({ type: 'ready' }));
