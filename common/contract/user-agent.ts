import Bowser from 'bowser';
import { isbot } from 'isbot';

/** What caused a visit: a person, a crawler, an app that previews links, or a browser that prefetches. */
export type Kind = 'person' | 'bot' | 'preview' | 'prefetch';

/** Properties derived from a `User-Agent`. Source: docs/contract.md, "Analytics". */
export interface Agent {
  readonly bot: boolean;
  /** Previews links for a messenger or a social network. */
  readonly previewer: boolean;
  readonly device: 'mobile' | 'tablet' | 'desktop' | 'bot' | 'other';
  /** By name, or `unknown`. */
  readonly operatingSystem: string;
  /** By name, or `unknown`. */
  readonly browser: string;
}

/**
 * Version of these rules: increment it when this file, or the packages it uses, would classify the same scan
 * differently.
 */
export const RULES_VERSION = 2;

const UNKNOWN: Agent = {
  bot: false,
  previewer: false,
  device: 'other',
  operatingSystem: 'unknown',
  browser: 'unknown',
};

const PREVIEWER =
  /whatsapp|facebookexternalhit|facebot|slackbot-linkexpanding|slack-imgproxy|twitterbot|telegrambot|discordbot|linkedinbot|skypeuripreview|pinterestbot|redditbot|viber|vkshare|embedly|iframely|snapchat.*preview|mastodon|bluesky cardyb/i;

/**
 * Known browser names. For an unknown agent Bowser returns its first word as the name, which would let anyone write
 * into a breakdown.
 */
const BROWSERS = new Set(Object.values(Bowser.BROWSER_MAP));
const SYSTEMS = new Set(Object.values(Bowser.OS_MAP));

/** Parsing takes about 20 µs, and a few thousand user agents make up nearly all scans. */
const MAX_CACHED = 10_000;
const cache = new Map<string, Agent>();

/** Classifies a `User-Agent`, with a cache. Never throws: what cannot be determined is `unknown`. */
export function agentOf(userAgent: string): Agent {
  const cached = cache.get(userAgent);
  if (cached) return cached;
  const agent = classify(userAgent);
  // Clearing the whole cache now and then costs less than tracking the order of use.
  if (cache.size >= MAX_CACHED) cache.clear();
  cache.set(userAgent, agent);
  return agent;
}

/** The kind of visit; `purpose` is the header `Sec-Purpose`. */
export function kindOf(agent: Agent, purpose: string): Kind {
  if (agent.previewer) return 'preview';
  if (agent.bot) return 'bot';
  return purpose !== '' && /\b(prefetch|prerender)\b/i.test(purpose) ? 'prefetch' : 'person';
}

function classify(userAgent: string): Agent {
  if (userAgent === '') return UNKNOWN;
  try {
    const { browser, os, platform } = Bowser.parse(userAgent);
    const previewer = PREVIEWER.test(userAgent);
    const bot = previewer || platform.type === 'bot' || isbot(userAgent);
    return {
      bot,
      previewer,
      device: bot ? 'bot' : deviceOf(platform.type, userAgent),
      operatingSystem: os.name && SYSTEMS.has(os.name) ? os.name : 'unknown',
      browser: browser.name && BROWSERS.has(browser.name) ? browser.name : 'unknown',
    };
  } catch {
    // A header that the parser fails on costs the breakdown value, never the scan.
    return UNKNOWN;
  }
}

/** Bowser has no type for Chromebooks and desktops with BSD: `(X11; CrOS x86_64 …)`, `(X11; FreeBSD amd64; …)`. */
function deviceOf(type: string | undefined, userAgent: string): Agent['device'] {
  if (type === undefined && userAgent.includes('(X11;')) return 'desktop';
  return type === 'mobile' || type === 'tablet' || type === 'desktop' ? type : 'other';
}
