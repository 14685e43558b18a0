import type { DescMethod } from '@bufbuild/protobuf';

/** The full name of a method, `package.Service/Method`, which is also the path of its calls after a slash. */
export function methodName({ parent, name }: DescMethod): string {
  return `${parent.typeName}/${name}`;
}
