import type { buildConnector } from 'undici';
import { filterReads } from './filter-reads.ts';

const CONTINUE = Buffer.from('HTTP/1.1 100 ');
const END_OF_HEAD = '\r\n\r\n';

/**
 * undici closes the connection if a server sends 100 Continue without being asked, which servers may do, while it
 * accepts all other interim responses. So the 100 becomes a 103 where a read begins with it: servers send it before
 * anything else. Source: RFC 9110, section 15.2.
 */
export function acceptContinue(connect: buildConnector.connector): buildConnector.connector {
  return filterReads(connect, () => (bytes) => {
    for (let at = 0; bytes?.subarray(at, at + CONTINUE.length).equals(CONTINUE); ) {
      bytes.write('103', at + 'HTTP/1.1 '.length);
      at = bytes.indexOf(END_OF_HEAD, at) + END_OF_HEAD.length;
    }
    return bytes;
  });
}
