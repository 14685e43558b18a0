import { create, type JsonValue, toJson } from '@bufbuild/protobuf';
import { failure } from '../../common/contract/errors.ts';
import { type LandingPage, LandingPageSchema } from '../../proto/gen/signpost/pages/v1/landing_page_pb.ts';
import { readWebAddress } from './target-url.ts';

/**
 * A landing page as it is kept: a `LandingPage` in protobuf's JSON form, trimmed, its colours in full. Lengths and
 * colours are constraints of the proto file; what those can't say fails here with INVALID_FIELD.
 */
export function readLandingPage(asked: LandingPage | undefined): JsonValue {
  if (!asked) throw failure('INVALID_FIELD', 'landing_page: is needed.');
  const { title, text, links, foregroundColor, backgroundColor } = asked;
  const page = create(LandingPageSchema, {
    title: oneLine('landing_page.title', title),
    text: severalLines('landing_page.text', text),
    links: links.map(({ label, url }, index) => {
      const field = `landing_page.links[${index}]`;
      const address = readWebAddress(`${field}.url`, url);
      if ('problem' in address) throw failure('INVALID_FIELD', address.problem);
      return { label: oneLine(`${field}.label`, label), url: address.url };
    }),
    foregroundColor: sixDigits(foregroundColor),
    backgroundColor: sixDigits(backgroundColor),
  });
  return toJson(LandingPageSchema, page);
}

function oneLine(field: string, input: string): string {
  const text = input.trim();
  if (text === '') throw failure('INVALID_FIELD', `${field}: is needed.`);
  if (/\p{Cc}/u.test(text)) throw failure('INVALID_FIELD', `${field}: must be one line without control characters.`);
  return text;
}

function severalLines(field: string, input: string): string {
  const text = input.replaceAll('\r\n', '\n').trim();
  if (/[^\P{Cc}\n\t]/u.test(text)) throw failure('INVALID_FIELD', `${field}: must have no control characters.`);
  return text;
}

function sixDigits(colour: string): string {
  return colour.length === 4 ? colour.replace(/[^#]/g, '$&$&') : colour;
}
