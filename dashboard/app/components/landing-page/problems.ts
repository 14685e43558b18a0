import { contrast, luminance, parseColour } from '../../../../common/codes/colour.ts';
import { isLonger } from '../../../../common/codes/is-longer.ts';
import { MIN_TEXT_CONTRAST } from '../../../../common/codes/page-style.ts';
import { parseWebAddress } from '../../../../common/codes/web-address.ts';
import type { LandingPage } from '../../../../proto/gen/signpost/pages/v1/landing_page_pb.ts';
import type { FieldErrors } from '../../data/field-errors.ts';
import type { Messages } from '../../messages/index.ts';
import { isColour } from '../colour-field.tsx';

/** Source: proto/signpost/pages/v1/landing_page.proto, as the lengths below. */
export const MAX_LINKS = 20;

/** What is wrong with a page, by the API's names of fields. The core decides finally. */
export function landingPageProblems(page: LandingPage, { common, landingPage }: Messages): FieldErrors {
  const { problems } = landingPage;
  const found: Record<string, string | undefined> = {};
  const line = (field: string, text: string, most: number, problem: string) => {
    if (text.trim() === '' || isLonger(text, most)) found[field] = problem;
    else if (/\p{Cc}/u.test(text)) found[field] = problems.oneLine;
  };
  line('landing_page.title', page.title, 200, problems.title);
  if (isLonger(page.text, 5_000)) found['landing_page.text'] = problems.text;
  else if (/[^\P{Cc}\r\n\t]/u.test(page.text)) found['landing_page.text'] = problems.controlCharacters;
  if (page.links.length > MAX_LINKS) found['landing_page.links'] = problems.links;
  for (const [index, { label, url }] of page.links.entries()) {
    const field = `landing_page.links[${index}]`;
    line(`${field}.label`, label, 100, problems.label);
    const address = parseWebAddress(url);
    if ('problem' in address) found[`${field}.url`] = common.urlProblems[address.problem];
  }
  for (const [field, colour] of Object.entries({
    foreground_color: page.foregroundColor,
    background_color: page.backgroundColor,
  })) {
    if (!isColour(colour)) found[`landing_page.${field}`] = common.colourProblem;
  }
  return found;
}

/** Why the gateway won't use the text colour; undefined if it will, or if there is none. */
export function textColourProblem(page: LandingPage): 'illegible' | 'needsBackground' | undefined {
  const { foregroundColor, backgroundColor } = page;
  if (foregroundColor === '' || !isColour(foregroundColor) || !isColour(backgroundColor)) return undefined;
  if (backgroundColor === '') return 'needsBackground';
  const ratio = contrast(luminance(parseColour(foregroundColor)), luminance(parseColour(backgroundColor)));
  return ratio < MIN_TEXT_CONTRAST ? 'illegible' : undefined;
}
