/** Returns a field of a response that the core always sends. `name` is for the error if it is missing: `code`. */
export function requiredField<Field>(field: Field | undefined, name: string): Field {
  if (field === undefined) throw new Error(`the response of the core has no ${name}`);
  return field;
}
