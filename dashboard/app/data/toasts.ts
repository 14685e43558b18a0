import { useSyncExternalStore } from 'react';

export interface Toast {
  readonly id: number;
  readonly text: string;
  readonly kind: 'done' | 'failed' | 'pending';
  /** Takes back what was done. */
  readonly undo?: (() => void) | undefined;
  /** Does what failed once more. */
  readonly retry?: (() => void) | undefined;
}

/**
 * Beyond this, the oldest messages give way to new ones, but none that can be acted on or that says what is being done.
 */
const MAX_SHOWN = 3;

/** Beyond this, the oldest messages that can be acted on give way to new ones of them. */
const MAX_ACTIONS = 5;

let toasts: readonly Toast[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

/** Says for some seconds what was done or why it was not. */
export function showToast(
  text: string,
  options: Partial<Pick<Toast, 'undo' | 'retry'>> & { kind?: 'done' | 'failed' } = {},
): void {
  add({ kind: 'done', ...options, text });
}

/**
 * Says what is being done until the returned function is called. Meanwhile the browser asks before the page is closed.
 */
export function showPending(text: string): () => void {
  const id = add({ kind: 'pending', text });
  return () => removeToast(id);
}

export function removeToast(id: number): void {
  set(toasts.filter((toast) => toast.id !== id));
}

/** The messages to show, the oldest first. */
export function useToasts(): readonly Toast[] {
  return useSyncExternalStore(subscribe, () => toasts);
}

function add(toast: Omit<Toast, 'id'>): number {
  lastId += 1;
  const actionable = ({ undo, retry }: Partial<Toast>) => undo !== undefined || retry !== undefined;
  const replaceable = toasts.filter((shown) => shown.kind !== 'pending' && !actionable(shown));
  const replaced = [
    ...replaceable.slice(0, Math.max(0, toasts.length + 1 - MAX_SHOWN)),
    ...(actionable(toast) ? toasts.filter(actionable).slice(0, 1 - MAX_ACTIONS) : []),
  ];
  set([...toasts.filter((shown) => !replaced.includes(shown)), { ...toast, id: lastId }]);
  return lastId;
}

function set(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
