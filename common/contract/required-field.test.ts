import { expect, test } from 'vitest';
import { requiredField } from './required-field.ts';

test('a field that a response lacks is an error that names it, whatever values others may have', () => {
  expect(requiredField('', 'name')).toBe('');
  expect(() => requiredField(undefined, 'code')).toThrow('the response of the core has no code');
});
