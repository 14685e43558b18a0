import type { api as en } from '../en/api.ts';

export const api: typeof en = {
  intro: 'Codes mit eigenen Programmen anlegen und verwalten, über REST.',
  docs: 'Referenz',
  key: {
    title: 'API-Schlüssel',
    text: 'Das Konto hat einen Schlüssel. Er beginnt mit sk_live_ und erlaubt alles, was die API bietet. Signpost speichert nur seinen Hash und kann ihn daher nicht wieder anzeigen.',
    ownersOnly: 'Inhaber des Kontos legen ihn an, ersetzen und widerrufen ihn.',
    noApi:
      'Der Tarif dieses Kontos enthält keinen API-Zugang. Ein Schlüssel lässt sich anlegen. Aufrufe mit ihm, die Codes anlegen oder auflisten oder Bilder oder Stapel betreffen, werden aber mit 403 beantwortet.',
    rotate: 'Neuen Schlüssel anlegen',
    rotateTitle: 'Einen neuen API-Schlüssel anlegen?',
    rotateText: [
      'Der jetzige Schlüssel, falls es einen gibt, gilt sofort nicht mehr: Beide zugleich gelten nie.',
      'Jedes Programm, das ihn verwendet, erhält 401, bis es den neuen hat. Scans gedruckter Codes sind nicht betroffen.',
    ],
    rotateUnknown:
      'Die Verbindung ist abgebrochen: Der jetzige Schlüssel gilt vielleicht schon nicht mehr. Legen Sie noch einen an und geben Sie ihn Ihren Programmen.',
    revoke: 'Schlüssel widerrufen',
    revokeTitle: 'Den API-Schlüssel widerrufen?',
    revokeText: [
      'Jedes Programm, das ihn verwendet, erhält sofort 401, bis ein Inhaber einen neuen anlegt.',
      'Scans gedruckter Codes sind nicht betroffen.',
    ],
    revoked: 'Der API-Schlüssel wurde widerrufen',
    newTitle: 'Der neue API-Schlüssel',
    newText:
      'Er wird nur jetzt angezeigt. Speichern Sie ihn dort, wo Ihre Programme ihn finden, und bewahren Sie ihn auf wie ein Passwort.',
    label: 'API-Schlüssel',
    done: 'Ich habe ihn gespeichert',
  },
  call: {
    title: 'Aufruf der API',
    base: 'Basis-URL',
    example: 'Einen Code anlegen',
    copyExample: 'Aufruf kopieren',
  },
  usage: {
    title: 'Nutzung und Grenzen',
    requests: 'Anfragen in diesem Monat',
    of: (used, limit) => `${used} von ${limit}`,
    unlimited: (used) => `${used}, ohne Begrenzung`,
    burst: 'Anfragen in je 60 Sekunden',
    codes: 'Verwendete Codes',
    rows: 'Zeilen eines Stapels, höchstens',
    note: 'Gezählt wird je Kalendermonat in UTC. Die API beantwortet zu viele Anfragen in 60 Sekunden mit 429 und Retry-After, solche über dem Monatskontingent mit 429 ohne Retry-After, zu viele Codes oder Zeilen eines Stapels mit 403.',
  },
  log: {
    title: 'Anfragen',
    note: 'Die letzten 1.000 Anfragen mit dem Schlüssel des Kontos.',
    status: 'Status',
    all: 'Alle',
    classes: { 2: '2xx: erfolgreich', 3: '3xx', 4: '4xx: abgelehnt', 5: '5xx: fehlgeschlagen' },
    id: 'Anfrage-ID',
    idNote: 'X-Request-Id der Antwort',
    none: 'Noch keine Anfragen.',
    noneFound: 'Keine Anfrage passt.',
    time: 'Zeit',
    request: 'Anfrage',
    duration: 'Dauer',
    ms: (ms) => `${ms} ms`,
  },
};
