/** Longest name of a folder or tag, in characters. Source: docs/contract.md, "The QR code resource". */
const MAX_CHARACTERS = 100;

/** What `folder=none` means in a list, so that no folder can be called so. */
const RESERVED = 'none';

/** A name that can be used, or the sentence that says why it can't. */
export type Name = { readonly name: string } | { readonly problem: string };

/** A folder's name: trimmed, 1–100 characters, not `none` in any case. `field`: what a problem names. */
export function folderName(input: string, field = 'folder'): Name {
  const checked = labelName(field, input);
  if ('name' in checked && isUnfiled(checked.name)) {
    return { problem: `${field}: "none" is reserved for unfiled codes.` };
  }
  return checked;
}

/** A tag's name: trimmed, 1–100 characters. */
export function tagName(input: string, field = 'tags'): Name {
  return labelName(field, input);
}

/** Whether a folder filter asks for unfiled codes. */
export function isUnfiled(folder: string): boolean {
  return folder.trim().toLowerCase() === RESERVED;
}

function labelName(field: string, input: string): Name {
  const name = input.trim();
  const characters = [...name].length;
  if (characters === 0) return { problem: `${field}: a name can't be empty.` };
  if (characters > MAX_CHARACTERS) return { problem: `${field}: a name has at most ${MAX_CHARACTERS} characters.` };
  // Postgres keeps no NUL, and control characters are never meant.
  if (/\p{Cc}/u.test(name)) return { problem: `${field}: a name has no control characters.` };
  return { name };
}
