import type { messages as en } from '../en/index.ts';
import { api } from './api.ts';
import { audit } from './audit.ts';
import { batches } from './batches.ts';
import { charts } from './charts.ts';
import { code } from './code.ts';
import { codes } from './codes.ts';
import { common } from './common.ts';
import { domains } from './domains.ts';
import { labels } from './labels.ts';
import { landingPage } from './landing-page.ts';
import { newCode } from './new-code.ts';
import { overview } from './overview.ts';
import { rowSentence } from './row-sentences.ts';
import { shell } from './shell.ts';
import { target } from './target.ts';
import { team } from './team.ts';
import { webhooks } from './webhooks.ts';

export const messages: typeof en = {
  api,
  audit,
  batches,
  charts,
  code,
  codes,
  common,
  domains,
  labels,
  landingPage,
  newCode,
  overview,
  rowSentence,
  shell,
  target,
  team,
  webhooks,
};
