import type { domains as en } from '../en/domains.ts';

export const domains: typeof en = {
  intro: 'Codes können statt des Hostnamens von Signpost Ihren eigenen tragen: https://menu.example.com/r/…',
  add: 'Domain hinzufügen',
  hostname: 'Hostname',
  hostnameNote: 'Ein eigener Name für Ihre Codes, etwa menu.example.com. Nicht der Ihrer Website.',
  empty: 'Noch keine Domains',
  emptyText:
    'Mit einer eigenen Domain zeigen gedruckte Codes Ihren Namen statt den von Signpost und gehören für immer zu ihm.',
  states: {
    pending: 'Wartet auf den TXT-Eintrag',
    verified: 'Wartet auf die Adresse',
    live: 'In Betrieb',
    failing: 'Gestört',
  },
  explained: {
    pending:
      'Legen Sie beide Einträge bei Ihrem DNS-Anbieter an. Der TXT-Eintrag beweist, dass der Hostname Ihnen gehört.',
    verified: 'Der TXT-Eintrag wurde gefunden. Es fehlt der Eintrag, der den Hostnamen zu Signpost führt.',
    live: '',
    failing:
      'Scans von Codes mit diesem Hostnamen können fehlschlagen. Bis das behoben ist, lassen sich keine neuen Codes mit ihm drucken.',
  },
  lastCheck: 'Letzte Prüfung:',
  notChecked: 'Noch nicht geprüft.',
  automatic:
    'Die Einträge werden automatisch geprüft, und diese Seite zeigt das Ergebnis. Bis neue Einträge sichtbar sind, können Minuten vergehen.',
  records: (host) => `DNS-Einträge von ${host}`,
  showRecords: 'DNS-Einträge',
  type: 'Typ',
  name: 'Name',
  value: 'Wert',
  purpose: 'Zweck',
  proof: 'Nachweis',
  address: 'Verweist auf Signpost',
  check: 'Jetzt prüfen',
  checkOf: (host) => `Jetzt prüfen: ${host}`,
  checked: { live: (host) => `${host} ist in Betrieb`, waiting: (host) => `${host} ist noch nicht bereit` },
  added: (when) => `hinzugefügt ${when}`,
  remove: 'Entfernen',
  removeOf: (host) => `Entfernen: ${host}`,
  removeTitle: (host) => `${host} entfernen?`,
  removeText: [
    'Mit der Domain lassen sich keine weiteren Codes drucken.',
    'Codes, die mit ihr gedruckt sind, funktionieren weiter, solange ihr DNS zu Signpost führt. Sie bekommt aber kein neues Zertifikat: Läuft das jetzige ab, schlagen Scans im Browser fehl.',
    'Wird die Domain wieder hinzugefügt, beantwortet sie diese Codes wie zuvor.',
  ],
  removed: (host) => `${host} wurde entfernt`,
};
