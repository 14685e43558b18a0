const plural = (count: number, one: string, many: string) => (count === 1 ? one : many);

/** Texts of the first page. */
export const overview = {
  period: 'Period',
  days: (count: number) => `${count} days`,
  scansOver: 'Scans',
  today: 'Scans today',
  todayNote: (time: string, today: string, yesterday: string) => `By ${time} UTC: ${today}, yesterday ${yesterday}`,
  todayStarted: 'The day (UTC) has just begun',
  inPeriod: (days: number) => `Scans in ${days} days`,
  change: (share: string, days: number) => `${share} against the ${days} days before, without today`,
  noChange: (days: number) => `None in the ${days} days before`,
  figures: 'Figures',
  codes: 'Codes in use',
  requests: 'API requests this month',
  of: (limit: string) => `of ${limit}`,
  unlimited: 'without limit',
  topCodes: 'Most scanned codes',
  topCodesNone: 'No code has been scanned in this period.',
  landingPage: 'Landing page',
  allCodes: 'All codes',
  attention: {
    title: 'Needs your attention',
    none: 'Nothing needs your attention.',
    unchecked: 'Not everything could be checked. Reload the page to try again.',
    domainFailing: (host: string) => `${host} no longer points to Signpost`,
    domainWaiting: (host: string) => `${host} is not set up yet`,
    domainAction: 'See the DNS records',
    endpointDisabled: (url: string) => `The webhook ${url} is disabled`,
    endpointFailing: (url: string, since: string) => `The webhook ${url} is failing, first ${since}`,
    endpointFailed: (url: string, count: string, isOne: boolean) =>
      `${count} ${isOne ? 'event' : 'events'} did not reach ${url}`,
    endpointAction: 'See the deliveries',
    batchRunning: (name: string, done: string, total: string) =>
      `The batch ${name} is running: ${done} of ${total} rows`,
    batchFailed: (name: string, count: number, formatted: string) =>
      `${formatted} ${plural(count, 'row', 'rows')} of the batch ${name} could not be created`,
    batchNamed: (name: string) => `“${name}”`,
    batchUnnamed: (created: string) => `of ${created}`,
    batchAction: 'See the batch',
    codesLimit: (used: string, limit: string) => `${used} of ${limit} codes of your plan are in use`,
    codesLimitNote: 'At the limit no more codes can be created. Printed codes keep working.',
    codesAction: 'See the codes',
    requestsLimit: (used: string, limit: string) => `${used} of ${limit} API requests of this month are used up`,
    requestsLimitNote:
      'At the limit the API answers 429 until the month ends. Scans and this dashboard are not affected.',
    requestsAction: 'See the usage',
  },
  first: {
    title: 'Create your first code',
    text: 'Print it once, and change where it leads whenever you like. Its scans appear here.',
    action: 'New code',
    viewer: 'Scans appear here as soon as someone creates a code.',
  },
};
