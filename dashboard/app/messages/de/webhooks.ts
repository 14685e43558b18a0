import type { webhooks as en } from '../en/webhooks.ts';

export const webhooks: typeof en = {
  intro: 'Signpost ruft Ihre Systeme auf, sobald sich etwas ändert, signiert nach Standard Webhooks.',
  add: 'Endpunkt hinzufügen',
  empty: 'Noch keine Endpunkte',
  emptyText:
    'Ein Endpunkt ist eine https-Adresse bei Ihnen, die von neuen Codes, Änderungen und fertigen Stapeln sofort erfährt.',
  url: 'Adresse',
  urlNote: 'Eine https-Adresse, die innerhalb von 15 Sekunden mit 2xx antwortet. Sie bekommt sofort ein Testereignis.',
  events: 'Ereignisse',
  unknownResult:
    'Die Verbindung ist abgebrochen. Sehen Sie erst nach, ob der Endpunkt nun in der Liste steht: Ein zweiter bekäme alles noch einmal. Sein Schlüssel lässt sich erneuern.',
  eventsNote: 'Bis der Endpunkt ein Testereignis beantwortet hat, wird nichts anderes gesendet.',
  types: {
    'qr.created': 'Ein Code wurde angelegt, einzeln oder in einem Stapel',
    'qr.updated': 'Ein Code wurde geändert',
    'qr.archived': 'Ein Code wurde gelöscht',
    'bulk.completed': 'Alle Zeilen eines Stapels sind abgeschlossen',
    'domain.live': 'Eine eigene Domain ist zum ersten Mal in Betrieb',
    'team.member_added': 'Ein Mitglied kam hinzu',
    'team.member_removed': 'Ein Mitglied ging',
  },
  states: {
    working: 'In Betrieb',
    failing: 'Gestört',
    disabled: 'Abgeschaltet',
    unverified: 'Wartet auf die erste Antwort',
  },
  failingSince: (when) => `Erster Fehlschlag ${when}`,
  verifiedSince: (when) => `Erste Antwort ${when}`,
  back: 'Alle Endpunkte',
  secret: {
    title: 'Der Signaturschlüssel',
    text: 'Prüfen Sie damit die Signatur jedes Aufrufs. Er wird nur jetzt angezeigt: Bewahren Sie ihn auf wie ein Passwort.',
    label: 'Signaturschlüssel',
    docs: 'So werden Signaturen geprüft',
    done: 'Ich habe ihn gespeichert',
  },
  sendTest: 'Testereignis senden',
  test: {
    waiting: 'Das Testereignis wird zugestellt …',
    succeeded: (status, latency) => `Der Endpunkt hat das Testereignis beantwortet: ${status}, nach ${latency} ms.`,
    failed: (why) => `Der Endpunkt hat das Testereignis nicht angenommen: ${why}. Es wird später erneut gesendet.`,
  },
  enable: 'Einschalten',
  disable: 'Abschalten',
  edit: 'Bearbeiten',
  rotate: 'Schlüssel erneuern',
  delete: 'Löschen',
  enabled: 'Eingeschaltet; zuerst geht ein Testereignis hinaus',
  saved: 'Der Endpunkt wurde geändert',
  disableTitle: 'Diesen Endpunkt abschalten?',
  disableText:
    'Bis er wieder eingeschaltet ist, wird ihm nichts gesendet. Was inzwischen geschieht, wird nicht nachgereicht.',
  rotateTitle: 'Den Signaturschlüssel erneuern?',
  rotateText:
    'Sie bekommen einen neuen Schlüssel. 24 Stunden lang ist jeder Aufruf mit beiden signiert, sodass Empfänger mit dem alten wie mit dem neuen ihn annehmen. Danach gilt nur noch der neue.',
  rotateUnknown:
    'Die Verbindung ist abgebrochen: Der Schlüssel ist vielleicht schon ersetzt. Erneuern Sie ihn noch einmal und geben Sie den Empfängern den neuen. Jeder ersetzte Schlüssel signiert noch 24 Stunden lang.',
  deleteTitle: 'Diesen Endpunkt löschen?',
  deleteText:
    'Wartende Zustellungen entfallen, und die Liste der Zustellungen ist gelöscht. Das lässt sich nicht rückgängig machen.',
  deleted: 'Der Endpunkt wurde gelöscht',
  deliveries: 'Zustellungen',
  noDeliveries: 'Keine Zustellungen.',
  statuses: { all: 'Alle', pending: 'Wartend', succeeded: 'Zugestellt', failed: 'Fehlgeschlagen' },
  statusFilter: 'Status',
  event: 'Ereignis',
  status: 'Status',
  attempts: 'Versuche',
  lastAnswer: 'Letzte Antwort',
  created: 'Angelegt',
  nextAttempt: (when) => `nächster Versuch ${when}`,
  none: 'noch keine',
  resend: 'Erneut senden',
  resendOf: (event) => `Erneut senden: ${event}`,
  resent: 'Wird erneut gesendet',
  resendFailed: 'Alle fehlgeschlagenen senden',
  resendFailedTitle: 'Alle fehlgeschlagenen Zustellungen erneut senden?',
  resendFailedText:
    'Jede in den letzten 30 Tagen fehlgeschlagene Zustellung wird erneut gesendet. Empfänger sehen dieselben Ereignis-IDs wie zuvor.',
  resentFailed: (count, formatted) =>
    count === 0
      ? 'In den letzten 30 Tagen ist keine Zustellung fehlgeschlagen'
      : `${formatted} ${count === 1 ? 'Ereignis wird' : 'Ereignisse werden'} erneut gesendet`,
  details: (event) => `Versuche von ${event}`,
  request: 'Anfrage',
  requestNote: 'Jeder Versuch hat eine eigene Signatur und den Zeitpunkt, zu dem signiert wurde.',
  noResponse: 'Keine Antwort',
  latency: (ms) => `${ms} ms`,
  noAttempts: 'Noch kein Versuch.',
  notFound: 'Diesen Endpunkt gibt es nicht. Vielleicht wurde er gelöscht.',
};
