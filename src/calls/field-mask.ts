import type { FieldMask } from '@bufbuild/protobuf/wkt';
import { failure } from '../../common/contract/errors.ts';

/**
 * The fields that an update changes: those that its mask names, or without a mask those that have a value. Fails with
 * NO_FIELDS when there is none, and with INVALID_FIELD when the mask names a part of a field, or a field that needs a
 * value and has none. `hasValue`: of each field that can be changed. `clearable`: fields that are cleared when they are
 * named without a value. Source: AIP-134.
 */
export function fieldsToUpdate<Field extends string>(
  mask: FieldMask | undefined,
  hasValue: Readonly<Record<Field, boolean>>,
  clearable: readonly NoInfer<Field>[] = [],
): ReadonlySet<Field> {
  const all = Object.keys(hasValue) as Field[];
  if (mask) expectWholeFields(mask, all);
  const named =
    mask === undefined ? all.filter((field) => hasValue[field]) : all.filter((field) => mask.paths.includes(field));
  if (named.length === 0) throw failure('NO_FIELDS', `Set at least one of ${all.join(', ')}.`);
  const missing = named.find((field) => !hasValue[field] && !clearable.includes(field));
  if (missing !== undefined) throw failure('INVALID_FIELD', `update_mask: names ${missing}, which has no value.`);
  return new Set(named);
}

/**
 * Fails with INVALID_FIELD when a mask names anything but these fields. The constraints of the proto files also allow
 * parts of them, such as `landing_page.title`, which would change nothing without an error.
 */
export function expectWholeFields({ paths }: FieldMask, fields: readonly string[]): void {
  const other = paths.find((path) => !fields.includes(path));
  if (other === undefined) return;
  throw failure('INVALID_FIELD', `update_mask: names ${other}; name only whole fields: ${fields.join(', ')}.`);
}
