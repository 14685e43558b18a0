import { expect, test } from 'vitest';
import { isPublicAddress } from './public-address.ts';

test.each([
  ['64:ff9b::5db8:d70e', true],
  ['64:ff9b::93.184.215.14', true],
  ['64:ff9b::7f00:1', false],
  ['64:ff9b::a9fe:a9fe', false],
  ['64:ff9b::168.63.129.16', false],
  ['64:ff9b:0:0:0:1:5db8:d70e', false],
  ['64:ff9b:1::5db8:d70e', false],
])('an address of NAT64 is as public as the IPv4 address in it: %s', (address, isPublic) => {
  expect(isPublicAddress(address)).toBe(isPublic);
});
