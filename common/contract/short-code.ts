/** Digits and letters, without those that are easily confused in print: 0 O 1 I l. */
export const SHORT_CODE_ALPHABET = '23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
export const SHORT_CODE_LENGTH = 7;

/** The format of short codes. Source: docs/contract.md, "Identifiers". */
export const SHORT_CODE = new RegExp(`^[${SHORT_CODE_ALPHABET}]{${SHORT_CODE_LENGTH}}$`);
