import { create } from '@bufbuild/protobuf';
import { FieldMaskSchema } from '@bufbuild/protobuf/wkt';
import { expect, test } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { fieldsToUpdate } from './field-mask.ts';

const HAS_VALUE = { name: true, plan: false, overrides: false };
const mask = (...paths: string[]) => create(FieldMaskSchema, { paths });

test('without a mask, the fields that have a value are changed', () => {
  expect([...fieldsToUpdate(undefined, HAS_VALUE)]).toEqual(['name']);
});

test('with a mask, the fields that it names are changed, and those that can be cleared need no value', () => {
  expect([...fieldsToUpdate(mask('overrides'), HAS_VALUE, ['overrides'])]).toEqual(['overrides']);
  expect([...fieldsToUpdate(mask('name', 'overrides'), HAS_VALUE, ['overrides'])]).toEqual(['name', 'overrides']);
});

test.each([
  ['no field has a value', undefined, 'NO_FIELDS', 'Set at least one of name.'],
  ['the mask is empty', mask(), 'NO_FIELDS', 'Set at least one of name.'],
  [
    'the mask names a field without a value',
    mask('name'),
    'INVALID_FIELD',
    'update_mask: names name, which has no value.',
  ],
  [
    'the mask names a part of a field',
    mask('overrides.api'),
    'INVALID_FIELD',
    'update_mask: names overrides.api; name only whole fields: name.',
  ],
])('%s: nothing is changed', (_, fields, reason, sentence) => {
  let error: unknown;
  try {
    fieldsToUpdate(fields, { name: false });
  } catch (thrown) {
    error = thrown;
  }
  expect(readFailure(error as never)).toMatchObject({ reason });
  expect((error as Error).message).toContain(sentence);
});
