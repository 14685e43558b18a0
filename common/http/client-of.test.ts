import fc from 'fast-check';
import { expect, test } from 'vitest';
import { clientOf } from './client-of.ts';

test('any addresses of one /64 are one client, and those of two are not', () => {
  const group = fc.integer({ min: 0, max: 0xffff }).map((value) => value.toString(16));
  const four = fc.tuple(group, group, group, group).map((groups) => groups.join(':'));
  fc.assert(
    fc.property(four, four, four, (network, one, other) => {
      expect(clientOf(`${network}:${one}`)).toBe(clientOf(`${network}:${other}`));
      if (one !== other) expect(clientOf(`${one}:${network}`)).not.toBe(clientOf(`${other}:${network}`));
    }),
  );
  for (const odd of ['', '198.51.100.1', 'fe80::1%eth0', '::', 'no:address'])
    expect(clientOf(odd)).toBeTypeOf('string');
});

test('an IPv4 address is the same client however it is written, and another one another', () => {
  for (const mapped of ['::ffff:198.51.100.1', '::FFFF:198.51.100.1', '::ffff:c633:6401', '0:0:0:0:0:ffff:c633:6401'])
    expect(clientOf(mapped)).toBe('198.51.100.1');
  expect(clientOf('198.51.100.1')).toBe('198.51.100.1');
  expect(clientOf('::ffff:198.51.100.2')).toBe('198.51.100.2');
});
