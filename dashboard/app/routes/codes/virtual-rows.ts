import { type RefObject, useEffect, useLayoutEffect, useState } from 'react';

/** The tallest element, in px, that leaves a margin to Chromium's limit of 33,554,428 px (Firefox: 17,895,697 px). */
const MAX_HEIGHT_PX = 16_000_000;

/** Rows above and below the visible ones that are rendered too. */
const OVERSCAN = 6;

/** Which of the rows of a scrolling element are rendered, and where. */
export interface VirtualRows {
  /** The first rendered row, and the one after the last. */
  readonly first: number;
  readonly last: number;
  /** Height of the element that all rows would fill, in px. */
  readonly height: number;
  /** Rows that fit into the visible part. */
  readonly perPage: number;
  /** Where a row is, in px from the top of that element. */
  topOf(index: number): number;
  /** Scrolls as little as it takes to show a row. */
  reveal(index: number): void;
}

/**
 * Renders only the visible of `count` rows of equal height. A list that is taller than browsers support has the tallest
 * supported height instead, and a pixel of the scrollbar stands for more than one of the list: 2.5 px for a million
 * rows of 40 px. Positions are computed, not measured: a million measured rows would take 100 MB.
 */
export function useVirtualRows(
  scroller: RefObject<HTMLElement | null>,
  { count, rowHeight, headerHeight }: { count: number; rowHeight: number; headerHeight: number },
): VirtualRows {
  const [scrollTop, setScrollTop] = useState(0);
  const [viewport, setViewport] = useState(0);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const measure = () => setViewport(Math.max(0, element.clientHeight - headerHeight));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [scroller, headerHeight]);
  useEffect(() => {
    const element = scroller.current;
    const read = () => element && setScrollTop(element.scrollTop);
    element?.addEventListener('scroll', read, { passive: true });
    return () => element?.removeEventListener('scroll', read);
  }, [scroller]);

  const full = count * rowHeight;
  const height = Math.min(full, MAX_HEIGHT_PX);
  const scale = height < full ? (full - viewport) / (height - viewport) : 1;
  const offset = scrollTop * scale;
  const first = Math.max(0, Math.floor(offset / rowHeight) - OVERSCAN);
  const last = Math.min(count, Math.ceil((offset + viewport) / rowHeight) + OVERSCAN);
  return {
    first: Math.min(first, last),
    last,
    height,
    perPage: Math.max(1, Math.floor(viewport / rowHeight)),
    topOf: (index) => index * rowHeight - offset + scrollTop,
    reveal: (index) => {
      const element = scroller.current;
      if (!element) return;
      const [top, bottom] = [index * rowHeight, (index + 1) * rowHeight];
      if (top < offset) element.scrollTop = Math.floor(top / scale);
      else if (bottom > offset + viewport) element.scrollTop = Math.ceil((bottom - viewport) / scale);
    },
  };
}
