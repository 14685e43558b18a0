/** A sentence of the core about a code or a row, as it is. */
export const rowSentence = (sentence: string): string => sentence;
