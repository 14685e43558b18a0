/**
 * What the core says about a field, without the name of the field, and what it is in German. A test compares them with
 * the core's.
 */
const SENTENCES: readonly (readonly [RegExp, string])[] = [
  [/^(?:is required|must be at least 1 character)\.$/, 'bitte ausfüllen.'],
  [/^must (?:have|be) at most (\S+) characters\.$/, 'hat mehr als $1 Zeichen.'],
  [/^must be at most (\d+) bytes\.$/, 'hat mehr als $1 Bytes.'],
  [/^must have at most (\S+) bytes; this one has (\S+)\.$/, 'hat mehr als $1 Bytes, nämlich $2.'],
  [/^must be an absolute http or https URL\.$/, 'muss eine vollständige Adresse mit http:// oder https:// sein.'],
  [/^must not carry a user name or password\.$/, 'darf keinen Benutzernamen und kein Passwort enthalten.'],
  [/^must have a host that can be looked up\.$/, 'hat einen ungültigen Hostnamen.'],
  [/^must not be a scan URL of this platform\.$/, 'darf keine Scan-URL dieser Plattform sein.'],
  [/^must not contain the NUL character\.$/, 'darf das Zeichen NUL nicht enthalten.'],
  [/^must be one line without control characters\.$/, 'muss eine Zeile ohne Steuerzeichen sein.'],
  [/^must not contain control characters\.$/, 'darf keine Steuerzeichen enthalten.'],
  [/^must be well-formed Unicode\.$/, 'ist kein gültiges Unicode.'],
  [/^must be a string(?: or null)?\.$/, 'muss ein Text sein.'],
  [/^must be an array of strings(?: or null)?\.$/, 'muss eine Liste von Texten sein.'],
  [/^must be #rgb or #rrggbb\.$/, 'muss aus # und drei oder sechs Hexadezimalziffern bestehen.'],
  [/^must contain at least 1 item\.$/, 'braucht mindestens 1 Eintrag.'],
  [/^must contain at least (\d+) items\.$/, 'braucht mindestens $1 Einträge.'],
  [/^must contain no more than (\d+) items\.$/, 'darf höchstens $1 Einträge haben.'],
  [/^map must be at most (\d+) entries\.$/, 'darf höchstens $1 Einträge haben.'],
  [/^repeated value must contain unique items\.$/, 'enthält einen Eintrag doppelt.'],
  [
    /^must be greater than or equal to (\d+) and less than or equal to (\d+)\.$/,
    'muss eine ganze Zahl von $1 bis $2 sein.',
  ],
  [/^must be in the years 1 to 9999\.$/, 'muss in den Jahren 1 bis 9999 liegen.'],
  [/^must be later than from\.$/, 'muss später als „von“ sein.'],
  [/^must be a time from 00:00 to 23:59, such as 09:30\.$/, 'muss eine Uhrzeit von 00:00 bis 23:59 sein.'],
  [/^must be a language such as de or de-DE, or \*\.$/, 'muss Kürzel wie de oder de-DE enthalten, oder *.'],
  [/^(.+) is not an assigned code of ISO 3166-1\.$/, '„$1“ ist kein Länderkürzel nach ISO 3166-1.'],
  [/^(.+) is none of (.+)\.$/, '„$1“ gehört nicht zu $2.'],
  [/^(.*) is not in the IANA time zone database\.$/, '„$1“ ist keine Zeitzone der IANA-Datenbank.'],
  [/^the label (.+) is used twice\.$/s, 'Die Bezeichnung „$1“ kommt zweimal vor.'],
  [/^must be a name, not an IP address\.$/, 'muss ein Name sein, keine IP-Adresse.'],
  [
    /^must be only a hostname, such as (\S+), without a scheme, a port or a path\.$/,
    'bitte geben Sie nur einen Hostnamen ein, zum Beispiel $1, ohne https://, Port und Pfad.',
  ],
  [
    /^must be one hostname without a wildcard; add each host separately\.$/,
    'Platzhalter sind nicht möglich. Bitte fügen Sie jeden Hostnamen einzeln hinzu.',
  ],
  [/^must be a hostname such as (\S+)\.$/, 'das ist kein gültiger Hostname. Gültig ist zum Beispiel $1.'],
  [/^must have at least two labels, such as (\S+)\.$/, 'muss aus mindestens zwei Teilen bestehen, zum Beispiel $1.'],
  [/^(\S+) is the platform itself\.$/, '„$1“ ist der Hostname von Signpost selbst.'],
  [/^a code can have at most (\d+) tags\.$/, 'Ein Code hat höchstens $1 Tags.'],
  [/^a name can't be empty\.$/, 'Der Name ist leer.'],
  [/^a name has at most (\d+) characters\.$/, 'Ein Name hat höchstens $1 Zeichen.'],
  [/^a name has no control characters\.$/, 'Ein Name darf keine Steuerzeichen enthalten.'],
  [/^"none" is reserved for unfiled codes\.$/, '„none“ steht für Codes ohne Ordner.'],
  [
    /^an account has at most ([\d,]+) (?:folders|tags); delete some, or use or merge existing ones\.$/,
    'Ein Konto kann höchstens $1 haben. Löschen Sie welche, oder verwenden Sie vorhandene.',
  ],
];

/** What the core says about a field in German; undefined if it is newer than these pages. */
export function fieldSentence(sentence: string): string | undefined {
  const [english, german] = SENTENCES.find(([english]) => english.test(sentence)) ?? [];
  if (!english || german === undefined) return undefined;
  // Thousands in German; what was typed, which is quoted, stays.
  return sentence.replace(english, german).replace(/(?<!„[^“]*)(?<=\d),(?=\d{3}\b)/g, '.');
}
