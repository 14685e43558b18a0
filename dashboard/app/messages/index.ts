import { createContext, useContext } from 'react';
import type { Language } from '../data/preferences.ts';
import type { messages } from './en/index.ts';

/** The texts of all pages, by page. Both languages have the same keys: the compiler checks it. */
export type Messages = typeof messages;

const CATALOGUES: Readonly<Record<Language, () => Promise<{ messages: Messages }>>> = {
  en: () => import('./en/index.ts'),
  de: () => import('./de/index.ts'),
};

/** Loads the texts of a language; the other language is not loaded. */
export async function loadMessages(language: Language): Promise<Messages> {
  return (await CATALOGUES[language]()).messages;
}

export const MessagesContext = createContext<Messages | undefined>(undefined);

export function useMessages(): Messages {
  const found = useContext(MessagesContext);
  if (!found) throw new Error('useMessages() needs a MessagesContext.');
  return found;
}
