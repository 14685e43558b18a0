import { fieldSentence } from './field-sentences.ts';

/**
 * Sentences of the core about codes and rows, of batches and of changes of many codes, and what they are in German; but
 * for those about a field, which begin with its name. A test compares them with the core's.
 */
const SENTENCES: readonly (readonly [RegExp, string | ((...groups: string[]) => string)])[] = [
  [/^A row must be an object\.$/, 'Eine Zeile muss ein Objekt sein.'],
  [
    /^design: light modules on a dark background cannot be read by every scanner\.$/,
    'Nicht jeder Scanner liest helle Module auf dunklem Grund.',
  ],
  [
    /^design: the contrast of the colours is only (\S+):1; below (\S+):1 many scanners fail\.$/,
    (_, contrast = '', least = '') =>
      `Der Kontrast der Farben beträgt nur ${decimal(contrast)}:1. Unter ${decimal(least)}:1 versagen viele Scanner.`,
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

/** A figure of the core, as German writes it. */
function decimal(figure: string): string {
  return figure.replace('.', ',');
}

/** A sentence about a field: its name in the API, and the rest. */
const ABOUT_FIELD = /^([\w.[\]]+): (.+)$/s;

/** A sentence of the core in German; one that is newer than these pages stays as it is. */
export function rowSentence(sentence: string): string {
  const whole = SENTENCES.reduce(
    (text, [english, german]) =>
      typeof german === 'string' ? text.replace(english, german) : text.replace(english, german),
    sentence,
  );
  const [, field = '', rest = ''] = ABOUT_FIELD.exec(whole) ?? [];
  const german = fieldSentence(rest);
  return german === undefined ? whole : `${field}: ${german}`;
}
