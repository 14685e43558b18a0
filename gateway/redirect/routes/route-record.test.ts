import { create, fromBinary, type MessageInitShape } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { encodeId } from '../../../common/contract/ids.ts';
import { LandingPageSchema } from '../../../proto/gen/signpost/pages/v1/landing_page_pb.ts';
import { Answer, CodeRouteSchema } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import { PolicySchema } from '../../../proto/gen/signpost/targets/v1/policy_pb.ts';
import { codeRecord, foundRoute, readCode, readPolicy, versionIn } from './route-record.ts';

const codeId = fc.uuid({ version: 7 }).map((uuid) => encodeId('qr', uuid));
const accountId = fc.uuid({ version: 7 }).map((uuid) => encodeId('acct', uuid));

function recordOf(route: MessageInitShape<typeof CodeRouteSchema>): Buffer | undefined {
  return codeRecord(1n, create(CodeRouteSchema, route));
}

test('a route is read back as it was written', () => {
  fc.assert(
    fc.property(
      fc.record({
        codeId,
        accountId,
        answer: fc.constantFrom(...Object.values(Answer)),
        targetUrl: fc.oneof(fc.constant(''), fc.webUrl({ withQueryParameters: true })),
        hostname: fc.oneof(fc.constant(''), fc.domain()),
        landingPage: fc.option(fc.record({ title: fc.string(), text: fc.string({ unit: 'grapheme' }) }), {
          nil: undefined,
        }),
      }),
      fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
      fc.nat(2 ** 32 - 1),
      fc.option(fc.record({ passQuery: fc.boolean() }), { nil: undefined }),
      ({ landingPage, ...rest }, version, targetVersion, policy) => {
        const page = landingPage && { landingPage: create(LandingPageSchema, landingPage) };
        const withPolicy = policy && {
          policy: create(PolicySchema, { rules: [{ name: 'ä' }], passQuery: policy.passQuery }),
        };
        const route = create(CodeRouteSchema, { shortCode: 'abcdefg', ...rest, targetVersion, ...page, ...withPolicy });
        const record = codeRecord(version, route) ?? Buffer.alloc(0);
        expect(versionIn(record)).toBe(version);
        const found = readCode(record, record.length);
        expect(found).toMatchObject(rest);
        expect(found).toEqual(foundRoute(version, route));
        const redirects = rest.answer === Answer.REDIRECT;
        const shown = fromBinary(LandingPageSchema, found.landingPage ?? Buffer.alloc(0));
        expect(shown).toEqual((!redirects && page?.landingPage) || create(LandingPageSchema));
        expect(found.targetVersion).toBe(redirects ? targetVersion : 0);
        expect(found.policy && readPolicy(found.policy)).toEqual(redirects ? withPolicy?.policy : undefined);
      },
    ),
  );
});

test('a route whose scans could not be answered or counted has no record', () => {
  const whole = {
    codeId: `qr_${'0'.repeat(26)}`,
    accountId: `acct_${'0'.repeat(26)}`,
    targetUrl: 'https://a.example/',
  };
  expect(recordOf(whole)).toBeDefined();
  for (const broken of [
    { codeId: 'qr_1' },
    { accountId: whole.codeId },
    { targetUrl: 'https://a.example/\r\nset-cookie: a=b' },
    { targetUrl: 'https://ä.example/' },
    { targetUrl: `https://a.example/${'a'.repeat(70_000)}` },
    { hostname: 'a'.repeat(256) },
    {
      answer: Answer.REDIRECT,
      policy: { rules: [{ outcome: { kind: { case: 'targetUrl' as const, value: 'https://a.example/\r\nb: c' } } }] },
    },
  ]) {
    expect(recordOf({ ...whole, ...broken })).toBeUndefined();
  }
});

test('a truncated record is rejected', () => {
  const record = recordOf({
    codeId: `qr_${'0'.repeat(26)}`,
    accountId: `acct_${'0'.repeat(26)}`,
    targetUrl: 'https://a.example/',
  });
  for (let length = 0; length < (record?.length ?? 0); length++) {
    expect(() => readCode(Buffer.from(record?.subarray(0, length) ?? []), length)).toThrow(RangeError);
  }
});
