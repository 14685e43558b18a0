import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeId, encodeId, idIn, newUuid } from './ids.ts';

test('an id decodes to the UUID that it was encoded from', () => {
  fc.assert(
    fc.property(fc.uuid(), (uuid) => {
      expect(decodeId('qr', encodeId('qr', uuid))).toBe(uuid);
    }),
  );
});

test('the bytes of a UUID encode to the same id at any offset', () => {
  fc.assert(
    fc.property(fc.uuid(), fc.uint8Array({ maxLength: 8 }), (uuid, before) => {
      const bytes = Buffer.concat([before, Buffer.from(uuid.replaceAll('-', ''), 'hex'), Buffer.alloc(1, 255)]);
      expect(idIn('acct', bytes, before.length)).toBe(encodeId('acct', uuid));
    }),
  );
});

test('ids sort as their UUIDs do', () => {
  fc.assert(
    fc.property(fc.uuid(), fc.uuid(), (one, other) => {
      expect(encodeId('qr', one) < encodeId('qr', other)).toBe(one < other);
    }),
  );
});

test('the examples of the TypeID specification are encoded as it says', () => {
  expect(encodeId('acct', '01890a5d-ac96-774b-bcce-b302099a8057')).toBe('acct_01h455vb4pex5vsknk084sn02q');
});

test.each([
  '',
  'qr_',
  'qr_01h455vb4pex5vsknk084sn02',
  'batch_01h455vb4pex5vsknk084sn02q',
  'qr_81h455vb4pex5vsknk084sn02q',
  'qr_01H455VB4PEX5VSKNK084SN02Q',
  'qr_01h455vb4pex5vsknk084sn0l2',
])('%j is no id of a code', (id) => expect(decodeId('qr', id)).toBeUndefined());

test('new ids are increasing', () => {
  const made = Array.from({ length: 10_000 }, newUuid);
  expect(made.toSorted()).toEqual(made);
});
