/** Texts of charts and their tables. */
export const charts = {
  period: (from: string, to: string, isPartial: boolean) =>
    `${from} to ${to}${isPartial ? ' so far' : ''}, days in UTC`,
  showTable: 'Show as a table',
  showChart: 'Show as a chart',
  showAll: (formatted: string) => `Show all ${formatted}`,
  day: 'Day',
  hour: 'Hour',
  scans: 'Scans',
  visitors: 'Visitors',
  visitorsNote: 'Visitors are counted per day: someone who scans on two days counts twice.',
  share: 'Share',
  value: 'Value',
  empty: 'No scans in this period.',
  devices: { mobile: 'Mobile', tablet: 'Tablet', desktop: 'Desktop', bot: 'Bots', other: 'Other' },
  direct: 'Camera or typed in',
};
