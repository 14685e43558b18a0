import Bowser from 'bowser';
import { isbot } from 'isbot';

/** What made a visit: someone with a reader, a crawler, an app that previews links, a browser that looks ahead. */
export type Kind = 'person' | 'bot' | 'preview' | 'prefetch';

/** What a `User-Agent` tells. Source: docs/contract.md, "Analytics". */
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

/** Rises whenever the rules of this file, or the packages behind them, would judge the same scan differently. */
export const RULES = 1;

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
 * Browsers by name. Bowser takes the first word of an agent that it does not know for a name: those would let anybody
 * write into a breakdown.
 */
const BROWSERS = new Set(Object.values(Bowser.BROWSER_MAP));
const SYSTEMS = new Set(Object.values(Bowser.OS_MAP));

/** Parsing takes some 20 µs, and the same few thousand agents make nearly all scans. */
const REMEMBERED = 10_000;
const remembered = new Map<string, Agent>();

/** Judges a `User-Agent`, from memory where it can. Never throws: what can't be told is `unknown`. */
export function agentOf(userAgent: string): Agent {
  const known = remembered.get(userAgent);
  if (known) return known;
  const agent = judge(userAgent);
  // Starting afresh now and then costs less than keeping the order of every use.
  if (remembered.size >= REMEMBERED) remembered.clear();
  remembered.set(userAgent, agent);
  return agent;
}

/** The kind of visit; `purpose` is `Sec-Purpose`. */
export function kindOf(agent: Agent, purpose: string): Kind {
  if (agent.previewer) return 'preview';
  if (agent.bot) return 'bot';
  return purpose !== '' && /\b(prefetch|prerender)\b/i.test(purpose) ? 'prefetch' : 'person';
}

function judge(userAgent: string): Agent {
  if (userAgent === '') return UNKNOWN;
  try {
    const { browser, os, platform } = Bowser.parse(userAgent);
    const previewer = PREVIEWER.test(userAgent);
    const bot = previewer || platform.type === 'bot' || isbot(userAgent);
    return {
      bot,
      previewer,
      device: bot ? 'bot' : deviceOf(platform.type),
      operatingSystem: os.name && SYSTEMS.has(os.name) ? os.name : 'unknown',
      browser: browser.name && BROWSERS.has(browser.name) ? browser.name : 'unknown',
    };
  } catch {
    // A parser that stumbles over somebody's header costs the label, never the scan.
    return UNKNOWN;
  }
}

function deviceOf(type: string | undefined): Agent['device'] {
  return type === 'mobile' || type === 'tablet' || type === 'desktop' ? type : 'other';
}
