import { agentOf } from '../../common/contract/user-agent.ts';
import type { Random } from './random.ts';

/** What a scan tells about the person who scanned. */
export interface Visitor {
  /** ISO 3166-1 alpha-2; empty if unknown. */
  readonly country: string;
  readonly userAgent: string;
  readonly referrerHost: string;
}

type Weighted = readonly (readonly [value: string, weight: number])[];

const COUNTRIES: Weighted = [
  ['GB', 710],
  ['IE', 62],
  ['US', 58],
  ['FR', 47],
  ['DE', 44],
  ['NL', 24],
  ['ES', 20],
  ['IT', 14],
  ['BE', 9],
  ['PL', 6],
  ['JP', 4],
  ['', 2],
];

const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1';
const ANDROID =
  'Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Mobile Safari/537.36';
const SAMSUNG =
  'Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36';
const FIREFOX = 'Mozilla/5.0 (Android 15; Mobile; rv:143.0) Gecko/143.0 Firefox/143.0';
const TABLET =
  'Mozilla/5.0 (iPad; CPU OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1';
const WINDOWS =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36';
const MAC =
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Safari/605.1.15';

const USER_AGENTS: Weighted = [
  [IPHONE, 480],
  [ANDROID, 290],
  [SAMSUNG, 90],
  [TABLET, 42],
  [WINDOWS, 34],
  [MAC, 22],
  [FIREFOX, 20],
  ['WhatsApp/2.24.20.89 A', 14],
  ['Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)', 8],
];

const REFERRERS: Weighted = [
  ['', 900],
  ['instagram.com', 42],
  ['google.com', 28],
  ['facebook.com', 18],
  ['tripadvisor.co.uk', 12],
];

/** A visitor as they come to restaurants at the coast. */
export function drawVisitor(random: Random): Visitor {
  return {
    country: draw(random, COUNTRIES),
    userAgent: draw(random, USER_AGENTS),
    referrerHost: draw(random, REFERRERS),
  };
}

/** Agents by their user agent, which is parsed once. */
const agents = new Map(USER_AGENTS.map(([userAgent]) => [userAgent, agentOf(userAgent)]));

/** Device and operating system as conditions of policies name them. */
export function deviceOf({ userAgent }: Visitor): { device: string; operatingSystem: string } {
  const { device, operatingSystem } = agents.get(userAgent) ?? agentOf(userAgent);
  return { device, operatingSystem: operatingSystem.toLowerCase() };
}

function draw(random: Random, values: Weighted): string {
  let left = random.fraction() * values.reduce((sum, [, weight]) => sum + weight, 0);
  for (const [value, weight] of values) {
    left -= weight;
    if (left < 0) return value;
  }
  return '';
}
