import { Health, HealthCheckResponse_ServingStatus } from '../../proto/gen/grpc/health/v1/health_pb.ts';
import { AdmissionService } from '../../proto/gen/signpost/access/v1/admission_pb.ts';
import { AnalyticsService } from '../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import { BatchesService } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { ImagesService } from '../../proto/gen/signpost/images/v1/images_pb.ts';
import { TaxonomyService } from '../../proto/gen/signpost/taxonomy/v1/taxonomy_pb.ts';
import { type Client, createGrpcClients } from './transport.ts';

/** Clients of the core's services, which the REST API calls. */
export interface CoreClients {
  readonly admission: Client<typeof AdmissionService>;
  readonly analytics: Client<typeof AnalyticsService>;
  readonly batches: Client<typeof BatchesService>;
  readonly codes: Client<typeof CodesService>;
  readonly images: Client<typeof ImagesService>;
  readonly taxonomy: Client<typeof TaxonomyService>;
  /** Rejects if no core reports that it is serving. */
  check(): Promise<void>;
  /** Closes the connections; pending calls fail. */
  close(): void;
}

/**
 * Creates clients of the core's gRPC port. It connects with the first call, so it does not need a running core; calls
 * fail with `unavailable`, or with `deadline_exceeded` after `timeoutMs`.
 *
 * `addresses`: `host:port`, used round-robin. `ca`: PEM, the CA of the cores' certificates.
 */
export function createCoreClients(options: {
  addresses: readonly string[];
  timeoutMs: number;
  ca?: Buffer | undefined;
}): CoreClients {
  const { addresses, timeoutMs, ca } = options;
  const grpc = createGrpcClients({ addresses, timeoutMs, ca });
  const health = grpc.client(Health);
  return {
    admission: grpc.client(AdmissionService),
    analytics: grpc.client(AnalyticsService),
    batches: grpc.client(BatchesService),
    codes: grpc.client(CodesService),
    images: grpc.client(ImagesService),
    taxonomy: grpc.client(TaxonomyService),
    async check() {
      const { status } = await health.check({});
      if (status !== HealthCheckResponse_ServingStatus.SERVING) throw new Error('the core does not serve');
    },
    close: () => grpc.close(),
  };
}
