import { create, type JsonValue, toBinary, toJson } from '@bufbuild/protobuf';
import { failure } from '../../../common/contract/errors.ts';
import { contentProblem } from '../../../common/contract/limits.ts';
import { type LandingPage, LandingPageSchema } from '../../../proto/gen/signpost/pages/v1/landing_page_pb.ts';
import { readWebAddress } from './target-url.ts';

/**
 * Validates a landing page and converts it to its stored form: a `LandingPage` in protobuf's JSON form, with trimmed
 * texts and six-digit colours. The proto file constrains lengths and colours; this checks everything else. Fails with
 * INVALID_FIELD.
 */
export function readLandingPage(input: LandingPage | undefined): JsonValue {
  if (!input) throw failure('INVALID_FIELD', 'landing_page: is required.');
  const { title, text, links, foregroundColor, backgroundColor } = input;
  const page = create(LandingPageSchema, {
    title: parseLine('landing_page.title', title),
    text: parseText('landing_page.text', text),
    links: links.map(({ label, url }, index) => {
      const field = `landing_page.links[${index}]`;
      const address = readWebAddress(`${field}.url`, url);
      if ('problem' in address) throw failure('INVALID_FIELD', address.problem);
      return { label: parseLine(`${field}.label`, label), url: address.url };
    }),
    foregroundColor: sixDigits(foregroundColor),
    backgroundColor: sixDigits(backgroundColor),
  });
  const problem = contentProblem('landing_page', toBinary(LandingPageSchema, page).length);
  if (problem !== undefined) throw failure('INVALID_FIELD', problem);
  return toJson(LandingPageSchema, page);
}

function parseLine(field: string, input: string): string {
  const text = input.trim();
  if (text === '') throw failure('INVALID_FIELD', `${field}: is required.`);
  if (/\p{Cc}/u.test(text)) throw failure('INVALID_FIELD', `${field}: must be one line without control characters.`);
  return text;
}

function parseText(field: string, input: string): string {
  const text = input.replaceAll('\r\n', '\n').trim();
  if (/[^\P{Cc}\n\t]/u.test(text)) throw failure('INVALID_FIELD', `${field}: must not contain control characters.`);
  return text;
}

function sixDigits(colour: string): string {
  return colour.length === 4 ? colour.replace(/[^#]/g, '$&$&') : colour;
}
