import { create, toBinary } from '@bufbuild/protobuf';
import { fileDesc, type GenFile } from '@bufbuild/protobuf/codegenv2';
import { base64Encode } from '@bufbuild/protobuf/wire';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';

/**
 * In place of protovalidate's own descriptor, 17 KB compressed: the core validates, so the pages need no rules, only a
 * file of this name that others can import.
 */
export const file_buf_validate_validate: GenFile = fileDesc(
  base64Encode(
    toBinary(
      FileDescriptorProtoSchema,
      create(FileDescriptorProtoSchema, {
        name: 'buf/validate/validate.proto',
        package: 'buf.validate',
        syntax: 'proto2',
      }),
    ),
  ),
);
