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
  const loaded = new Map<Language, Texts>();
  const loading = new Map<Language, Promise<Texts>>();
  const start = async (language: Language) => {
    try {
      const texts = await loaders[language]();
      loaded.set(language, texts);
      return texts;
    } catch (error) {
      // The next try loads it again.
      loading.delete(language);
      throw error;
    }
  };
  const load = (language: Language): Promise<Texts> => {
    const known = loading.get(language) ?? start(language);
    loading.set(language, known);
    return known;
  };
  return {
    load,
    useLoaded(): Texts {
      const language = useLanguage();
      return loaded.get(language) ?? use(load(language));
    },
  };
}
