import { type RefObject, useEffect, useRef } from 'react';

/** The value of the latest rendering, for functions that an earlier one has made. */
export function useLatest<Value>(value: Value): Readonly<RefObject<Value>> {
  const latest = useRef(value);
  useEffect(() => {
    latest.current = value;
  });
  return latest;
}
