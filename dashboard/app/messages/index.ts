import { use } from 'react';
import { type Language, useLanguage } from '../data/preferences.ts';
import type { first } from './en/first.ts';
import type { messages } from './en/index.ts';

/** The texts of all pages, by page. Both languages have the same keys: the compiler checks it. */
export type Messages = typeof messages;

/** The texts of the frame and the first page, which are loaded before anything is shown. */
export type FirstMessages = typeof first;

const FIRST = catalogue<FirstMessages>({
  en: async () => (await import('./en/first.ts')).first,
  de: async () => (await import('./de/first.ts')).first,
});

/** Loaded with the first page that needs it: 10 KB compressed. */
const ALL = catalogue<Messages>({
  en: async () => (await import('./en/index.ts')).messages,
  de: async () => (await import('./de/index.ts')).messages,
});

export const loadFirstMessages = FIRST.load;
export const loadMessages = ALL.load;

/** The texts of the frame and the first page, and of the components that they share with other pages. */
export const useFirstMessages = FIRST.useLoaded;

/** The texts of all pages. Until they are loaded, the page that asks for them is suspended. */
export const useMessages = ALL.useLoaded;

/** Loads texts by language; languages that are not used are not loaded. */
function catalogue<Texts>(loaders: Readonly<Record<Language, () => Promise<Texts>>>) {
  const started = new Map<Language, Promise<Texts>>();
  const failed = new Set<Language>();
  const start = (language: Language): Promise<Texts> => {
    failed.delete(language);
    const texts = loaders[language]();
    texts.then(
      // So marked, React's `use` reads it at once, without suspending the page.
      (value) => Object.assign(texts, { status: 'fulfilled', value }),
      () => failed.add(language),
    );
    started.set(language, texts);
    return texts;
  };
  return {
    /** Loads the texts, anew if they could not be loaded before. */
    load: (language: Language): Promise<Texts> =>
      (failed.has(language) ? undefined : started.get(language)) ?? start(language),
    /**
     * Fails if the texts could not be loaded. React renders once more before it shows an error: loading them anew then
     * would go on forever. Calls `use` even if they are there: React fails if a component that has waited does not.
     */
    useLoaded(): Texts {
      const language = useLanguage();
      return use(started.get(language) ?? start(language));
    },
  };
}
