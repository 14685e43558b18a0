/**
 * Allows each key `most` of something at a time. The returned function acquires one and returns the function to release
 * it; undefined when the key already has `most`.
 */
export function limitAtOnce(most: number): (key: string) => (() => void) | undefined {
  const counts = new Map<string, number>();

  return (key) => {
    const count = counts.get(key) ?? 0;
    if (count >= most) return undefined;
    counts.set(key, count + 1);
    return () => {
      const left = (counts.get(key) ?? 0) - 1;
      if (left > 0) counts.set(key, left);
      else counts.delete(key);
    };
  };
}
