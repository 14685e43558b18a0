import { useSyncExternalStore } from 'react';

export const LANGUAGES = ['en', 'de'] as const;
export type Language = (typeof LANGUAGES)[number];
export type Theme = 'system' | 'light' | 'dark';

const listeners = new Set<() => void>();

/** The language of the pages: the chosen one, or the first of the browser's that there is. */
export function useLanguage(): Language {
  return useSyncExternalStore(subscribe, language);
}

export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, theme);
}

export function setLanguage(chosen: Language): void {
  localStorage.setItem('language', chosen);
  apply();
}

export function setTheme(chosen: Theme): void {
  localStorage.setItem('theme', chosen);
  apply();
}

/** Puts language and theme into effect for the document, and tells the components. */
export function apply(): void {
  const root = document.documentElement;
  root.lang = language();
  if (theme() === 'system') delete root.dataset.theme;
  else root.dataset.theme = theme();
  for (const listener of listeners) listener();
}

/** The language now, for code outside of components. */
export function language(): Language {
  const wanted = [localStorage.getItem('language') ?? '', ...navigator.languages];
  for (const tag of wanted) {
    const found = LANGUAGES.find((each) => tag.toLowerCase().split('-')[0] === each);
    if (found) return found;
  }
  return 'en';
}

function theme(): Theme {
  const stored = localStorage.getItem('theme');
  return stored === 'light' || stored === 'dark' ? stored : 'system';
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
