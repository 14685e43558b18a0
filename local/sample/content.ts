import type { MessageInitShape } from '@bufbuild/protobuf';
import type { CreateBatchRequestSchema } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import type { RuleSchema } from '../../proto/gen/signpost/targets/v1/policy_pb.ts';
import type { SampleCode, ScanPattern } from './sample-code.ts';

const MENUS = 'Menus';
const PACKAGING = 'Packaging';
const WALLS = 'Windows and walls';
const KITCHEN = 'Kitchen equipment';

const LUNCH = {
  name: 'Lunch',
  when: {
    weekly: { timeZone: 'Europe/London', days: ['mon', 'tue', 'wed', 'thu', 'fri'], from: '11:00', until: '15:00' },
  },
  outcome: { kind: { case: 'targetUrl', value: 'https://example.com/quayside/lunch' } },
} as const satisfies MessageInitShape<typeof RuleSchema>;

/** Twenty codes of a restaurant group with three places, newest first. All addresses lead to example.com. */
export const CODES: readonly SampleCode[] = [
  {
    name: 'Quayside: table menu',
    folder: MENUS,
    tags: ['quayside', 'print 2026'],
    content: {
      targetUrl: 'https://example.com/quayside/menu',
      changes: [
        {
          daysAgo: 68,
          note: 'Lunch has a menu of its own',
          policy: {
            rules: [LUNCH],
          },
        },
        {
          daysAgo: 41,
          note: 'French guests get the menu in French; two layouts for the evening are compared',
          policy: {
            rules: [
              LUNCH,
              {
                name: 'Guests from France',
                when: { countries: ['FR', 'BE'] },
                outcome: { kind: { case: 'targetUrl', value: 'https://example.com/quayside/carte' } },
              },
              {
                name: 'Evening layout',
                outcome: {
                  kind: {
                    case: 'split',
                    value: {
                      variants: [
                        { label: 'photos', weight: 1, targetUrl: 'https://example.com/quayside/menu?layout=photos' },
                        { label: 'text only', weight: 1, targetUrl: 'https://example.com/quayside/menu?layout=text' },
                      ],
                    },
                  },
                },
              },
            ],
          },
        },
      ],
    },
    scans: { perDay: 62, hours: 'meals' },
  },
  {
    name: 'Old Town: table menu',
    folder: MENUS,
    tags: ['old town', 'print 2026'],
    content: {
      targetUrl: 'https://example.com/old-town/menu',
      changes: [
        { daysAgo: 55, note: 'Autumn menu', targetUrl: 'https://example.com/old-town/autumn' },
        { daysAgo: 12, note: 'Winter menu', targetUrl: 'https://example.com/old-town/winter' },
      ],
    },
    scans: { perDay: 47, hours: 'meals' },
  },
  {
    name: 'Market Hall: counter menu',
    folder: MENUS,
    tags: ['market hall', 'print 2026'],
    content: { targetUrl: 'https://example.com/market-hall/menu' },
    scans: { perDay: 40, hours: 'shops' },
  },
  {
    name: 'Quayside: wine list',
    folder: MENUS,
    tags: ['quayside'],
    content: { targetUrl: 'https://example.com/quayside/wine' },
    scans: { perDay: 13, hours: 'meals' },
  },
  {
    name: 'Quayside: breakfast',
    folder: MENUS,
    tags: ['quayside'],
    content: { targetUrl: 'https://example.com/quayside/breakfast' },
    scans: { perDay: 11, hours: 'shops', firstDaysAgo: 72 },
  },
  {
    name: 'Children’s menu',
    folder: MENUS,
    tags: ['quayside', 'old town'],
    content: { targetUrl: 'https://example.com/menu/children' },
    scans: { perDay: 7, hours: 'meals' },
  },
  {
    name: 'Delivery bag: order again',
    folder: PACKAGING,
    tags: ['delivery', 'print 2026'],
    content: {
      targetUrl: 'https://example.com/order',
      campaignType: 'packaging',
      changes: [
        {
          daysAgo: 34,
          note: 'Which offer brings people back?',
          policy: {
            rules: [
              {
                name: 'Offer',
                outcome: {
                  kind: {
                    case: 'split',
                    value: {
                      variants: [
                        { label: 'free dessert', weight: 2, targetUrl: 'https://example.com/order?offer=dessert' },
                        { label: 'ten percent', weight: 1, targetUrl: 'https://example.com/order?offer=ten' },
                      ],
                    },
                  },
                },
              },
            ],
            parameters: { utm_source: 'bag' },
          },
        },
      ],
    },
    scans: { perDay: 36, hours: 'meals' },
  },
  {
    name: 'Sauce jar: recipes',
    folder: PACKAGING,
    tags: ['shop'],
    content: { targetUrl: 'https://example.com/recipes/sauces', campaignType: 'packaging' },
    scans: { perDay: 15, hours: 'shops' },
  },
  {
    name: 'Coffee bag: brewing guide',
    folder: PACKAGING,
    tags: ['shop'],
    content: { targetUrl: 'https://example.com/coffee/brewing', campaignType: 'packaging' },
    scans: { perDay: 12, hours: 'shops' },
  },
  {
    name: 'Gift box: our story',
    folder: PACKAGING,
    tags: ['shop', 'christmas'],
    content: { targetUrl: 'https://example.com/story', campaignType: 'packaging' },
    scans: { perDay: 9, hours: 'shops', firstDaysAgo: 30 },
  },
  {
    name: 'Quayside: window',
    folder: WALLS,
    tags: ['quayside'],
    content: { targetUrl: 'https://example.com/quayside/book' },
    scans: { perDay: 18, hours: 'shops' },
  },
  {
    name: 'Market Hall: mural',
    folder: WALLS,
    tags: ['market hall'],
    content: { targetUrl: 'https://example.com/market-hall/mural' },
    scans: { perDay: 24, hours: 'shops' },
  },
  {
    name: 'Old Town: opening hours',
    folder: WALLS,
    tags: ['old town'],
    content: { targetUrl: 'https://example.com/old-town/hours' },
    scans: { perDay: 8, hours: 'shops' },
  },
  {
    name: 'Bus stops: summer terrace',
    folder: WALLS,
    tags: ['campaign'],
    paused: true,
    content: { targetUrl: 'https://example.com/terrace', campaignType: 'poster' },
    scans: { perDay: 34, hours: 'shops', lastDaysAgo: 44 },
  },
  {
    name: 'Dough mixer: manual',
    folder: KITCHEN,
    tags: ['machines'],
    content: { targetUrl: 'https://example.com/machines/mixer' },
    scans: { perDay: 2, hours: 'work' },
  },
  {
    name: 'Dishwasher: report a fault',
    folder: KITCHEN,
    tags: ['machines'],
    content: { targetUrl: 'https://example.com/machines/dishwasher/fault' },
    scans: { perDay: 1.5, hours: 'work' },
  },
  {
    name: 'Spring tasting: invitation',
    tags: ['campaign'],
    paused: true,
    content: { targetUrl: 'https://example.com/tasting', campaignType: 'flyer' },
    scans: { perDay: 5, hours: 'shops', lastDaysAgo: 70 },
  },
  {
    name: 'Jobs in our kitchens',
    folder: WALLS,
    tags: ['jobs'],
    content: { targetUrl: 'https://example.com/jobs', campaignType: 'poster' },
    scans: { perDay: 4, hours: 'work' },
  },
  {
    name: 'Christmas parties',
    tags: ['campaign', 'christmas'],
    content: {
      page: {
        landingPage: {
          title: 'Christmas at Harbour Kitchens',
          text: 'Parties of 8 to 60 people, in all three places.\nBook by the end of the month and the first round is on us.',
          links: [
            { label: 'Menus and prices', url: 'https://example.com/christmas/menus' },
            { label: 'Ask for a date', url: 'https://example.com/christmas/book' },
          ],
          foregroundColor: '#0b3d2e',
          backgroundColor: '#f6f1e7',
        },
        design: { foregroundColor: '#0b3d2e', backgroundColor: '#f6f1e7' },
      },
    },
    scans: { perDay: 26, hours: 'shops', firstDaysAgo: 38 },
  },
  {
    name: 'Quayside: guest Wi-Fi',
    tags: ['quayside'],
    content: {
      fixed: {
        content: { case: 'wifi', value: { ssid: 'Quayside guests', password: 'smoked-haddock' } },
        design: { foregroundColor: '#123a5c', backgroundColor: '#ffffff' },
      },
    },
  },
];

/** A batch of thirty rows, of which one fails because its target has no scheme. */
export const BATCH: MessageInitShape<typeof CreateBatchRequestSchema> & { name: string } = {
  name: 'Table stands, Old Town',
  design: { foregroundColor: '#7a1f2b', backgroundColor: '#ffffff' },
  rows: Array.from({ length: 30 }, (_, index) => ({
    targetUrl: index === 16 ? 'example.com/old-town/table/17' : `https://example.com/old-town/table/${index + 1}`,
    name: `Old Town: table ${index + 1}`,
    folder: 'Table stands',
    tags: ['old town'],
    externalRef: `OT-${String(index + 1).padStart(2, '0')}`,
  })),
};

/** The average scans of a code of the batch. */
export const BATCH_SCANS: ScanPattern = { perDay: 1.4, hours: 'meals', firstDaysAgo: 47 };

/** A domain whose DNS records are still missing. */
export const DOMAIN = 'qr.harbour-kitchens.example';

/** An endpoint that can't be reached, because no such host exists. */
export const ENDPOINT = {
  url: 'https://hooks.harbour-kitchens.example/signpost',
  events: ['qr.updated', 'bulk.completed'],
};
