/** Sentences that the core stores in English, and what they are in German. A test compares them with the core's. */
const SENTENCES: readonly (readonly [RegExp, string])[] = [
  [/^There is no TXT record at (\S+) yet\.$/, 'Bei $1 gibt es noch keinen TXT-Eintrag.'],
  [/^The TXT record at (\S+) does not contain (\S+)\.$/, 'Der TXT-Eintrag bei $1 enthält nicht $2.'],
  [
    /^Another account has verified this hostname and must remove it first\.$/,
    'Ein anderes Konto hat diesen Hostnamen nachgewiesen und muss ihn zuerst entfernen.',
  ],
  [/^(\S+) has no address yet\. /, '$1 hat noch keine Adresse. '],
  [/ and an address that is not public(?=\. Make )/, ' und einer nicht öffentlichen Adresse'],
  [/an address that is not public(?=\. Make )/, 'einer nicht öffentlichen Adresse'],
  [/^(\S+) resolves to (.+?)\. (?=Make )/, '$1 führt zu $2. '],
  [/Make (\S+) a CNAME for ([^\s,]+)\.$/, 'Machen Sie $1 zu einem CNAME für $2.'],
  [
    /Make (\S+) a CNAME for ([^\s,]+), or give it only the addresses (.+)\.$/,
    'Machen Sie $1 zu einem CNAME für $2, oder geben Sie ihm nur die Adressen $3.',
  ],
  [/^It was switched off\.$/, 'Er wurde ausgeschaltet.'],
  [/^It answered 410 Gone\.$/, 'Er hat mit 410 Gone geantwortet.'],
  [/^Its test event failed\.$/, 'Sein Testereignis ist fehlgeschlagen.'],
  [/^All deliveries failed for five days\.$/, 'Fünf Tage lang sind alle Zustellungen fehlgeschlagen.'],
];

/** A sentence of the core in German; one that is newer than these pages stays as it is. */
export function coreSentence(sentence: string): string {
  return SENTENCES.reduce((text, [english, german]) => text.replace(english, german), sentence);
}
