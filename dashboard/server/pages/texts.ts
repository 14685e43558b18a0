import { acceptedLanguages } from '../../../common/targets/language.ts';

/** The pages that the server itself shows around sign-in. */
export type PageKind =
  | 'link'
  | 'link-invalid'
  | 'not-a-member'
  | 'unverified'
  | 'sign-in-failed'
  | 'provider-unavailable'
  | 'no-provider'
  | 'unavailable'
  | 'foreign-origin'
  | 'not-found'
  | 'not-built';

interface PageText {
  readonly title: string;
  readonly text: string;
  /** The button of a form, or the link to start again. */
  readonly action?: string;
}

/** Texts of the pages by language (BCP 47). English is the fallback. */
const PAGE_TEXTS = {
  en: {
    link: { title: 'Sign in to Signpost', text: 'This link signs you in once.', action: 'Sign in' },
    'link-invalid': {
      title: 'This link does not work',
      text: 'It is invalid, expired or used. Please ask for a new one.',
    },
    'not-a-member': {
      title: 'You are not a member yet',
      text: 'Your e-mail address belongs to no account. Please ask an owner of the account to add you.',
      action: 'Sign in again',
    },
    unverified: {
      title: 'Your e-mail address is not verified',
      text: 'Please verify your e-mail address with your identity provider, and then sign in again.',
      action: 'Sign in again',
    },
    'sign-in-failed': {
      title: 'Sign-in failed',
      text: 'It was not completed, took too long, or was started in another window. Please try again.',
      action: 'Sign in again',
    },
    'provider-unavailable': {
      title: 'Sign-in is unavailable',
      text: 'The identity provider does not respond. Please try again shortly.',
      action: 'Try again',
    },
    'no-provider': {
      title: 'Sign in with a link',
      text: 'No identity provider is configured. Please ask for a sign-in link.',
    },
    unavailable: {
      title: 'Just a moment',
      text: 'Signpost is unavailable. Please try again shortly.',
      action: 'Try again',
    },
    'foreign-origin': {
      title: 'Please sign in here',
      text: 'This request came from another site, and was rejected.',
    },
    'not-found': { title: 'There is nothing here', text: 'This page does not exist.' },
    'not-built': {
      title: 'The dashboard is not built',
      text: 'Its pages are missing on this server: run npm run build:dashboard.',
    },
  },
  de: {
    link: { title: 'Bei Signpost anmelden', text: 'Mit diesem Link melden Sie sich einmal an.', action: 'Anmelden' },
    'link-invalid': {
      title: 'Dieser Link funktioniert nicht',
      text: 'Er ist ungültig, abgelaufen oder schon benutzt. Bitte fordern Sie einen neuen an.',
    },
    'not-a-member': {
      title: 'Sie sind noch kein Mitglied',
      text: 'Ihre E-Mail-Adresse gehört zu keinem Konto. Bitten Sie eine Inhaberin oder einen Inhaber, Sie hinzuzufügen.',
      action: 'Erneut anmelden',
    },
    unverified: {
      title: 'Ihre E-Mail-Adresse ist nicht bestätigt',
      text: 'Bitte bestätigen Sie Ihre E-Mail-Adresse bei Ihrem Identitätsanbieter, und melden Sie sich dann erneut an.',
      action: 'Erneut anmelden',
    },
    'sign-in-failed': {
      title: 'Die Anmeldung ist fehlgeschlagen',
      text: 'Sie wurde nicht abgeschlossen, hat zu lange gedauert oder begann in einem anderen Fenster. Bitte versuchen Sie es noch einmal.',
      action: 'Erneut anmelden',
    },
    'provider-unavailable': {
      title: 'Die Anmeldung ist gerade nicht möglich',
      text: 'Der Identitätsanbieter antwortet nicht. Bitte versuchen Sie es gleich noch einmal.',
      action: 'Noch einmal versuchen',
    },
    'no-provider': {
      title: 'Mit einem Link anmelden',
      text: 'Es ist kein Identitätsanbieter eingerichtet. Bitte fordern Sie einen Anmelde-Link an.',
    },
    unavailable: {
      title: 'Einen Augenblick',
      text: 'Signpost ist gerade nicht erreichbar. Bitte versuchen Sie es gleich noch einmal.',
      action: 'Noch einmal versuchen',
    },
    'foreign-origin': {
      title: 'Bitte melden Sie sich hier an',
      text: 'Diese Anfrage kam von einer anderen Website und wurde abgelehnt.',
    },
    'not-found': { title: 'Hier ist nichts', text: 'Diese Seite gibt es nicht.' },
    'not-built': {
      title: 'Das Dashboard ist nicht gebaut',
      text: 'Seine Seiten fehlen auf diesem Server: npm run build:dashboard erzeugt sie.',
    },
  },
} as const satisfies Record<string, Record<PageKind, PageText>>;

type Language = keyof typeof PAGE_TEXTS;

/** The texts of a page in the language that the reader prefers. */
export function textsFor(
  kind: PageKind,
  acceptLanguage: string | undefined,
): PageText & { readonly language: Language } {
  const languages = Object.keys(PAGE_TEXTS) as Language[];
  const preferred = acceptedLanguages(acceptLanguage).map((tag) => tag.split('-')[0]);
  const language = preferred.flatMap((tag) => languages.find((known) => known === tag) ?? [])[0] ?? 'en';
  return { language, ...PAGE_TEXTS[language][kind] };
}
