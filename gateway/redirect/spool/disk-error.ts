import { constants } from 'node:os';

/** The name of a disk's error, such as ENOSPC. Node calls some UNKNOWN, among them that of a quota (EDQUOT). */
export function diskErrorName({ code, errno }: NodeJS.ErrnoException): string {
  if (code !== undefined && code !== 'UNKNOWN') return code;
  const known = Object.entries(constants.errno).find(([, number]) => number === -(errno ?? 0));
  return known?.[0] ?? 'unknown';
}
