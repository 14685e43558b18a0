import type { overview as en } from '../en/overview.ts';

const plural = (count: number, one: string, many: string) => (count === 1 ? one : many);

export const overview: typeof en = {
  period: 'Zeitraum',
  days: (count) => `${count} Tage`,
  scansOver: 'Scans',
  today: 'Scans heute',
  todayNote: (time, today, yesterday) => `Bis ${time} UTC: ${today}, gestern ${yesterday}`,
  todayStarted: 'Der Tag (UTC) hat gerade begonnen',
  inPeriod: (days) => `Scans in ${days} Tagen`,
  change: (share, days) => `${share} gegenüber den ${days} Tagen davor, ohne heute`,
  noChange: (days) => `Keine in den ${days} Tagen davor`,
  figures: 'Zahlen',
  codes: 'Verwendete Codes',
  requests: 'API-Anfragen in diesem Monat',
  of: (limit) => `von ${limit}`,
  unlimited: 'ohne Begrenzung',
  topCodes: 'Am häufigsten gescannt',
  topCodesNone: 'In diesem Zeitraum wurde kein Code gescannt.',
  landingPage: 'Landingpage',
  allCodes: 'Alle Codes',
  attention: {
    title: 'Erfordert Ihre Aufmerksamkeit',
    none: 'Nichts erfordert Ihre Aufmerksamkeit.',
    unchecked: 'Nicht alles konnte geprüft werden. Laden Sie die Seite neu, um es noch einmal zu versuchen.',
    domainFailing: (host) => `${host} verweist nicht mehr auf Signpost`,
    domainWaiting: (host) => `${host} ist noch nicht eingerichtet`,
    domainAction: 'DNS-Einträge ansehen',
    endpointDisabled: (url) => `Der Webhook ${url} ist abgeschaltet`,
    endpointFailing: (url, since) => `Der Webhook ${url} schlägt fehl, zuerst ${since}`,
    endpointFailed: (url, count, isOne) =>
      isOne ? `Ein Ereignis hat ${url} nicht erreicht` : `${count} Ereignisse haben ${url} nicht erreicht`,
    endpointAction: 'Zustellungen ansehen',
    batchRunning: (name, done, total) => `Der Stapel ${name} läuft: ${done} von ${total} Zeilen`,
    batchFailed: (name, count, formatted) =>
      `${formatted} ${plural(count, 'Zeile', 'Zeilen')} des Stapels ${name} ${plural(count, 'konnte', 'konnten')} nicht angelegt werden`,
    batchNamed: (name) => `„${name}“`,
    batchUnnamed: (created) => `vom ${created}`,
    batchAction: 'Stapel ansehen',
    codesLimit: (used, limit) => `${used} von ${limit} Codes Ihres Tarifs sind in Gebrauch`,
    codesLimitNote:
      'Ist die Grenze erreicht, lassen sich keine Codes mehr anlegen. Gedruckte Codes funktionieren weiter.',
    codesAction: 'Codes ansehen',
    requestsLimit: (used, limit) => `${used} von ${limit} API-Anfragen dieses Monats sind verbraucht`,
    requestsLimitNote:
      'Ist die Grenze erreicht, antwortet die API bis zum Monatsende mit 429. Scans und diese Oberfläche sind nicht betroffen.',
    requestsAction: 'Nutzung ansehen',
  },
  first: {
    title: 'Legen Sie Ihren ersten Code an',
    text: 'Einmal gedruckt, lässt sich sein Ziel jederzeit ändern. Seine Scans erscheinen hier.',
    action: 'Neuer Code',
    viewer: 'Sobald jemand einen Code anlegt, erscheinen hier seine Scans.',
  },
};
