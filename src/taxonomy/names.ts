import { isLonger } from '../../common/codes/is-longer.ts';
import { MAX_LABEL_CHARACTERS } from '../../common/contract/limits.ts';

/** A character that can be seen, unlike a zero-width space: names without one look empty, and like one another. */
const VISIBLE = /[^\p{White_Space}\p{Default_Ignorable_Code_Point}]/u;

/** `folder=none` selects unfiled codes in a list, so no folder can have this name. */
const RESERVED = 'none';

/** A valid name, or a sentence that says why it is invalid. */
export type ParsedName = { readonly name: string } | { readonly problem: string };

/** Trims a folder's name: 1–100 characters, not `none` in any case. `field`: the field that a problem mentions. */
export function parseFolderName(input: string, field = 'folder'): ParsedName {
  const parsed = parseLabelName(field, input);
  if ('name' in parsed && isUnfiled(parsed.name)) {
    return { problem: `${field}: "none" is reserved for unfiled codes.` };
  }
  return parsed;
}

/** Trims a tag's name: 1–100 characters. `field`: the field that a problem mentions. */
export function parseTagName(input: string, field = 'tags'): ParsedName {
  return parseLabelName(field, input);
}

/** Whether a folder filter selects unfiled codes. */
export function isUnfiled(folder: string): boolean {
  return folder.trim().toLowerCase() === RESERVED;
}

function parseLabelName(field: string, input: string): ParsedName {
  const name = input.trim();
  if (isLonger(name, MAX_LABEL_CHARACTERS)) {
    return { problem: `${field}: a name has at most ${MAX_LABEL_CHARACTERS} characters.` };
  }
  // Postgres cannot store NUL, and other control characters are never intended.
  if (/\p{Cc}/u.test(name)) return { problem: `${field}: a name has no control characters.` };
  if (!VISIBLE.test(name)) return { problem: `${field}: a name can't be empty.` };
  return { name };
}
