import { expect, test } from 'vitest';
import { diskErrorName } from './disk-error.ts';

test('errors have the names that operators know, also those that Node calls unknown', () => {
  const error = (fields: object) => diskErrorName(Object.assign(new Error('write'), fields));
  expect(error({ code: 'ENOSPC', errno: -28 })).toBe('ENOSPC');
  // As Node 26 reports it on Linux.
  expect(error({ code: 'UNKNOWN', errno: -122 })).toBe('EDQUOT');
  expect(error({})).toBe('unknown');
});
