/** Whether a text has more than `most` characters; one that needs no counting is not split into them. */
export function isLonger(text: string, most: number): boolean {
  if (text.length <= most) return false;
  // A character is at most two UTF-16 code units.
  return text.length > 2 * most || [...text].length > most;
}
