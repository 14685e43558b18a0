/** By how much the server's clock is ahead of the browser's, in ms, to about a second. */
let ahead = 0;

/** The server's time in ms since 1970: a browser's clock may be wrong by minutes or days. */
export function serverNow(): number {
  return Date.now() + ahead;
}

/** Sets the server's time to that of a response which has just arrived. */
export function setServerTime({ headers }: Response): void {
  const date = Date.parse(headers.get('date') ?? '');
  if (!Number.isNaN(date)) ahead = date - Date.now();
}
