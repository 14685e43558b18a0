import { globSync } from 'node:fs';
import { resolve } from 'node:path';
import type { DescService } from '@bufbuild/protobuf';
import { Health } from '../../proto/gen/grpc/health/v1/health_pb.ts';
import { ServerReflection } from '../../proto/gen/grpc/reflection/v1/reflection_pb.ts';

const GENERATED = resolve(import.meta.dirname, '../../proto/gen/signpost');

/** Every service of Signpost's own, from the generated files, so that a new one is never left out. */
export const OWN_SERVICES: readonly DescService[] = (
  await Promise.all(globSync('*/v1/*_pb.ts', { cwd: GENERATED }).map((file) => import(resolve(GENERATED, file))))
)
  .flatMap((module: object) => Object.values(module))
  .filter((exported: { kind?: string }): exported is DescService => exported.kind === 'service');

/** Every service that a core serves, health and reflection included. */
export const RPC_SERVICES: readonly DescService[] = [...OWN_SERVICES, Health, ServerReflection];
