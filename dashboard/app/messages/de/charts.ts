import type { charts as en } from '../en/charts.ts';

export const charts: typeof en = {
  period: (from, to, isPartial) => `${from} bis ${to}${isPartial ? ' (noch nicht zu Ende)' : ''}, Tage in UTC`,
  showTable: 'Als Tabelle zeigen',
  showChart: 'Als Diagramm zeigen',
  showAll: (formatted) => `Alle ${formatted} zeigen`,
  day: 'Tag',
  hour: 'Stunde',
  scans: 'Scans',
  visitors: 'Besucher',
  visitorsNote: 'Besucher zählen je Tag: Wer an zwei Tagen scannt, zählt zweimal.',
  share: 'Anteil',
  value: 'Wert',
  empty: 'Keine Scans in diesem Zeitraum.',
  devices: { mobile: 'Handy', tablet: 'Tablet', desktop: 'Computer', bot: 'Bots', other: 'Andere' },
  direct: 'Kamera oder eingetippt',
};
