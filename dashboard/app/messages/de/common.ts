import type { common as en } from '../en/common.ts';
import { coreSentence } from './core-sentences.ts';
import { fieldSentence } from './field-sentences.ts';

/** What is wrong with a field, by its name in the API, where the core's sentence has no translation. */
const FIELDS: Readonly<Record<string, string>> = {
  hostname: 'Bitte geben Sie nur einen Hostnamen ein, zum Beispiel qr.example.com.',
  url: 'Bitte geben Sie eine öffentlich erreichbare https-Adresse ohne Benutzernamen und Passwort ein.',
  email: 'Bitte geben Sie eine E-Mail-Adresse ein.',
  name: 'Dieser Name ist nicht erlaubt oder zu lang.',
};

export const common: typeof en = {
  save: 'Speichern',
  cancel: 'Abbrechen',
  close: 'Schließen',
  delete: 'Löschen',
  add: 'Hinzufügen',
  undo: 'Rückgängig',
  more: 'Mehr',
  loadMore: 'Mehr laden',
  copy: 'Kopieren',
  copied: 'Kopiert',
  copyOf: (what) => `${what} kopieren`,
  loading: 'Wird geladen …',
  optional: 'optional',
  dismiss: 'Ausblenden',
  actions: 'Aktionen',
  name: 'Name',
  created: 'Angelegt',
  changed: 'Geändert',
  status: 'Status',
  unknown: 'unbekannt',
  other: 'andere',
  confirmName: (name) => `Zur Bestätigung „${name}“ eingeben`,
  discard: { title: 'Eingaben verwerfen?', text: 'Sie sind noch nicht gespeichert.', action: 'Verwerfen' },
  unavailable: 'Signpost ist gerade nicht erreichbar. Bitte versuchen Sie es gleich noch einmal.',
  coreSentence,
  tooManyCalls:
    'Signpost beantwortet noch viele Anfragen aus Ihren Tabs oder Ihrem Team. Bitte versuchen Sie es gleich noch einmal.',
  notAllowed: (role) => `Ihre Rolle erlaubt das nicht. Nötig ist die Rolle „${role}“.`,
  invalid: (field, sentence) => {
    const german = fieldSentence(sentence) ?? FIELDS[field] ?? `Eine Angabe ist ungültig (${field}: ${sentence})`;
    return german.charAt(0).toUpperCase() + german.slice(1);
  },
  reasons: {
    NO_FIELDS: () => 'Es gibt nichts zu ändern.',
    UNKNOWN_FOLDER: () => 'Diesen Ordner gibt es nicht mehr.',
    UNKNOWN_DOMAIN: () => 'Diese Domain gehört nicht zum Konto oder ist noch nicht in Betrieb.',
    INVALID_CURSOR: () => 'Die Liste hat sich geändert. Bitte laden Sie die Seite neu.',
    UNAUTHENTICATED: () => 'Ihre Sitzung war beendet. Bitte versuchen Sie es noch einmal.',
    FEATURE_NOT_IN_PLAN: () => 'Ihr Tarif enthält diese Funktion nicht.',
    ACCOUNT_CHANGED: () =>
      'In einem anderen Tab wurde ein anderes Konto geöffnet oder hat sich jemand anders angemeldet. Bitte laden Sie diese Seite neu.',
    NOT_A_MEMBER: () => 'Sie sind kein Mitglied dieses Kontos mehr.',
    QR_LIMIT_REACHED: ({ limit }) => `Alle ${limit} Codes Ihres Tarifs sind in Gebrauch.`,
    LIMIT_REACHED: ({ limit }) =>
      `Mehr als ${Number(limit).toLocaleString('de')} sind nicht möglich. Bitte entfernen Sie zuerst etwas davon.`,
    BATCH_LIMIT_EXCEEDED: () => 'Ihr Tarif erlaubt weniger Zeilen je Stapel. Bitte teilen Sie die Datei auf.',
    NOT_FOUND: () => 'Das gibt es in diesem Konto nicht (mehr).',
    ALREADY_EXISTS: () => 'Das ist schon vergeben.',
    NO_TARGET: () => 'Codes dieser Art lassen sich so nicht ändern.',
    LAST_OWNER: () => 'Ein Konto braucht einen Inhaber. Bitte machen Sie zuerst ein anderes Mitglied dazu.',
    TARGET_CHANGED: () => 'Das Ziel wurde inzwischen geändert. Bitte laden Sie die Seite neu.',
    NOTHING_TO_ENCODE: () => 'Dieser Code hat keinen Inhalt.',
    IDEMPOTENCY_KEY_IN_FLIGHT: () =>
      'Ihre erste Anfrage wird noch ausgeführt. Bitte versuchen Sie es gleich noch einmal.',
    MESSAGE_TOO_LARGE: () => 'Das ist zu groß, um es auf einmal zu senden.',
    TOO_MANY_ROWS: () => 'Auf einmal sind höchstens 25.000 Zeilen möglich. Bitte teilen Sie sie auf.',
    UNIMPLEMENTED: () => 'Diese Seite hat eine andere Version als Signpost. Bitte laden Sie sie neu.',
    CANCELED: () => 'Die Anfrage wurde abgebrochen. Bitte versuchen Sie es noch einmal.',
    RESOLVERS_UNAVAILABLE: ({ hostname }) =>
      `Die DNS-Server haben zu ${hostname} nicht geantwortet, daher wurde nichts geändert. Bitte versuchen Sie es gleich noch einmal.`,
    DOMAIN_NOT_RESOLVED: () => 'Die Domain dieser Codes führt gerade nicht zu Signpost.',
    INTERNAL: () => 'Bei Signpost ist ein Fehler aufgetreten. Er ist protokolliert.',
  },
  codes: (count, formatted) => `${formatted} ${count === 1 ? 'Code' : 'Codes'}`,
  scans: (count, formatted) => `${formatted} ${count === 1 ? 'Scan' : 'Scans'}`,
  pickColour: (what) => `${what}: Farbe wählen`,
  colourProblem: 'Bitte # und sechs Hexadezimalziffern, zum Beispiel #0a5f49.',
  urlProblems: {
    missing: 'Bitte geben Sie eine Adresse ein.',
    too_long: 'Eine Adresse hat höchstens 2.048 Zeichen.',
    not_absolute: 'Bitte geben Sie die vollständige Adresse ein, mit https:// oder http:// am Anfang.',
    credentials: 'Die Adresse darf keinen Benutzernamen und kein Passwort enthalten.',
    host: 'Dieser Hostname ist ungültig.',
  },
};
