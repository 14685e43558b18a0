/**
 * Sentences of the core about codes and rows, of batches and of changes of many codes, and what they are in German. Most
 * begin with the field of the API. A test compares them with the core's.
 */
const SENTENCES: readonly (readonly [RegExp, string])[] = [
  [/: is required\.$/, ': fehlt.'],
  [/: must have at most (\S+) characters\.$/, ': hat mehr als $1 Zeichen.'],
  [/: must be at most (\S+) characters\.$/, ': hat mehr als $1 Zeichen.'],
  [/: must be an absolute http or https URL\.$/, ': muss eine vollständige Adresse mit http:// oder https:// sein.'],
  [/: must not carry a user name or password\.$/, ': darf keinen Benutzernamen und kein Passwort enthalten.'],
  [/: must have a host that can be looked up\.$/, ': hat einen ungültigen Hostnamen.'],
  [/: must not be a scan URL of this platform\.$/, ': darf keine Scan-URL dieser Plattform sein.'],
  [/: must not contain the NUL character\.$/, ': darf das Zeichen NUL nicht enthalten.'],
  [/: must be well-formed Unicode\.$/, ': ist kein gültiges Unicode.'],
  [/: must be a string(?: or null)?\.$/, ': muss ein Text sein.'],
  [/: must be an array of strings(?: or null)?\.$/, ': muss eine Liste von Texten sein.'],
  [/^A row must be an object\.$/, 'Eine Zeile muss ein Objekt sein.'],
  [/: a code can have at most (\d+) tags\.$/, ': Ein Code hat höchstens $1 Tags.'],
  [/: a name can't be empty\.$/, ': Der Name ist leer.'],
  [/: a name has at most (\d+) characters\.$/, ': Ein Name hat höchstens $1 Zeichen.'],
  [/: a name has no control characters\.$/, ': Ein Name hat keine Steuerzeichen.'],
  [/: "none" is reserved for unfiled codes\.$/, ': „none“ steht für Codes ohne Ordner.'],
  [
    /: an account has at most ([\d,]+) (?:folders|tags); delete some, or use or merge existing ones\.$/,
    ': Mehr als $1 hat ein Konto nicht. Löschen Sie welche, oder verwenden Sie vorhandene.',
  ],
  [
    /^design: light modules on a dark background cannot be read by every scanner\.$/,
    'Nicht jeder Scanner liest helle Module auf dunklem Grund.',
  ],
  [
    /^design: the contrast of the colours is only (\S+):1; below (\S+):1 many scanners fail\.$/,
    'Der Kontrast der Farben beträgt nur $1:1. Unter $2:1 versagen viele Scanner.',
  ],
  [
    /^The account's limit of (\d+) QR codes is reached; delete some or change the plan\.$/,
    'Alle $1 Codes des Tarifs sind in Gebrauch. Löschen Sie welche, oder wechseln Sie den Tarif.',
  ],
  [
    /^This account has \d+ of its (\d+) QR codes; delete some or change the plan\.$/,
    'Alle $1 Codes des Tarifs sind in Gebrauch. Löschen Sie welche, oder wechseln Sie den Tarif.',
  ],
  [/^(?:id|short_code): there is no such code on this account\.$/, 'Diesen Code gibt es in diesem Konto nicht.'],
  [
    /^external_ref: no code of this account was created with this reference\.$/,
    'Mit dieser externen Referenz wurde kein Code dieses Kontos angelegt.',
  ],
  [
    /^external_ref: several codes were created with this reference; name the code by id or short_code\.$/,
    'Mit dieser externen Referenz wurden mehrere Codes angelegt. Nennen Sie ID oder Kurzcode.',
  ],
  [/^Only dynamic codes have a target\.$/, 'Nur dynamische Codes haben ein Ziel.'],
  [/^An earlier row already changes this code\.$/, 'Eine frühere Zeile ändert diesen Code schon.'],
  [/^The code was deleted before its target was changed\.$/, 'Der Code wurde gelöscht, bevor sein Ziel geändert war.'],
];

/** A sentence of the core in German; one that is newer than these pages stays as it is. */
export function rowSentence(sentence: string): string {
  return SENTENCES.reduce((text, [english, german]) => text.replace(english, german), sentence);
}
