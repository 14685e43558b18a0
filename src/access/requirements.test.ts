import { create, createFileRegistry, type DescMethod, type MessageInitShape, setExtension } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, MethodOptionsSchema } from '@bufbuild/protobuf/wkt';
import { expect, test } from 'vitest';
import {
  Caller,
  MemberRole,
  RequirementsSchema,
  requires,
} from '../../proto/gen/signpost/access/v1/requirements_pb.ts';
import { requirementsOf } from './requirements.ts';

function methodWith(requirements?: MessageInitShape<typeof RequirementsSchema>): DescMethod {
  const options = create(MethodOptionsSchema);
  if (requirements) setExtension(options, requires, create(RequirementsSchema, requirements));
  const file = create(FileDescriptorProtoSchema, {
    name: 'shop.proto',
    package: 'shop',
    syntax: 'proto3',
    messageType: [{ name: 'Nothing' }],
    service: [
      { name: 'Shop', method: [{ name: 'Open', inputType: '.shop.Nothing', outputType: '.shop.Nothing', options }] },
    ],
  });
  const method = createFileRegistry(file, () => undefined).getService('shop.Shop')?.methods[0];
  if (!method) throw new Error('the file has no method');
  return method;
}

test('a method has to state its requirements, and the role of members if it acts for an account', () => {
  expect(() => requirementsOf(methodWith())).toThrow('shop.Shop/Open states no requirements');
  for (const caller of [Caller.ACCOUNT, Caller.SERVICE_FOR_ACCOUNT]) {
    expect(() => requirementsOf(methodWith({ caller }))).toThrow('shop.Shop/Open states no role for members');
    expect(requirementsOf(methodWith({ caller, role: MemberRole.NONE })).role).toBe(MemberRole.NONE);
  }
  expect(requirementsOf(methodWith({ caller: Caller.SERVICE })).caller).toBe(Caller.SERVICE);
});
