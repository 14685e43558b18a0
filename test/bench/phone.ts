/** The headers that a phone sends after its camera has read a code. */
export const PHONE_HEADERS = {
  host: 'signpost.example',
  'user-agent':
    'Mozilla/5.0 (iPhone; CPU iPhone OS 19_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.1 Mobile/15E148 Safari/604.1',
  accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  'accept-language': 'de-DE,de;q=0.9',
  'accept-encoding': 'gzip, deflate, br',
  'sec-fetch-site': 'none',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
};

const REST = ` HTTP/1.1\r\n${Object.entries(PHONE_HEADERS)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('')}`;

/** A complete request for a code. `close`: the last one on its connection. `prefix`: of the path. */
export function requestHead(code: string, close = false, prefix = '/r/'): string {
  return `GET ${prefix}${code}${REST}${close ? 'connection: close\r\n' : ''}\r\n`;
}
