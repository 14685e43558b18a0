import fc from 'fast-check';

/** Text of characters that are valid in a header, and some that are not. */
export const latin1 = (from: number, maxLength: number) =>
  fc.string({ unit: fc.integer({ min: from, max: 0xff }).map((code) => String.fromCharCode(code)), maxLength });
const awkward = fc.constantFrom(
  '',
  '\0',
  '\ud800',
  'none',
  '__proto__',
  'constructor',
  'x'.repeat(3_000),
  '💥',
  '-1',
  '1e9',
);

const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 40 }), awkward);

/** Any text, encoded for a path or a query. */
export const encoded = text.map((each) => encodeURIComponent(each.toWellFormed()));

/** A query string of existing and unknown parameters. */
export const anyQuery = fc
  .array(
    fc.tuple(
      fc.oneof(
        fc.constantFrom(
          'limit',
          'offset',
          'cursor',
          'folder',
          'tag',
          'period',
          'format',
          'size',
          'status',
          '__proto__',
        ),
        encoded,
      ),
      fc.oneof(encoded, fc.constantFrom('%', '%ff', '%00', '+', '9'.repeat(40), 'png', 'failed', '=', '[]', '&&')),
    ),
    { maxLength: 5 },
  )
  .map((pairs) => pairs.map(([name, value]) => `${name}=${value}`).join('&'));

/** Headers that determine the message's length or its caller are covered by the tests of HTTP and of keys. */
const headerName = fc.constantFrom(
  'Accept',
  'Accept-Encoding',
  'Content-Encoding',
  'Content-Type',
  'Cookie',
  'Forwarded',
  'Grpc-Timeout',
  'Idempotency-Fingerprint',
  'Idempotency-Key',
  'If-Match',
  'If-Modified-Since',
  'If-None-Match',
  'Origin',
  'Range',
  'Signpost-Account',
  'Signpost-Actor',
  'Traceparent',
  'Tracestate',
  'Upgrade',
  'User-Agent',
  'X-Forwarded-For',
  'X-Forwarded-Host',
  'X-Http-Method-Override',
  'X-Request-Id',
);
export const anyHeaders = fc.array(
  fc.tuple(
    headerName,
    latin1(0x20, 60).map((value) => value.replaceAll('\x7f', '')),
  ),
  {
    maxLength: 6,
  },
);

const json = fc.oneof(text, fc.jsonValue({ maxDepth: 3 }), fc.constantFrom(null, [], {}, [null], 1e308, true));
const fields = fc.record(
  Object.fromEntries(
    ['target_url', 'name', 'paused', 'folder', 'tags', 'campaign_type', 'domain_id', 'design', 'rows', '__proto__'].map(
      (name) => [name, json],
    ),
  ),
  { requiredKeys: [] },
);
const good = fc.constantFrom('https://example.com/', ' http://example.com ');
/** Well typed, so that it gets further. */
const row = fc.record(
  {
    target_url: good,
    name: text,
    folder: text,
    tags: fc.array(text, { maxLength: 3 }),
    campaign_type: text,
    external_ref: text,
  },
  { requiredKeys: ['target_url'] },
);
const rows = fc.array(fc.oneof({ arbitrary: row, weight: 3 }, json, fields), { maxLength: 8 });
const typed = fc.oneof(
  fc.record(
    { name: text, folder: text, tags: fc.array(text, { maxLength: 3 }), paused: fc.boolean() },
    { requiredKeys: [] },
  ),
  row,
  fc.record({ rows, name: text }, { requiredKeys: ['rows'] }),
);
/** A body as bytes: often an object with well-typed fields, so that it gets further. */
export const anyBody = fc.oneof(
  { arbitrary: typed.map((each) => Buffer.from(JSON.stringify(each))), weight: 4 },
  fields.map((each) => Buffer.from(JSON.stringify(each))),
  fc.json().map((each) => Buffer.from(each)),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
);
