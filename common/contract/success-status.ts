import { isMessage, type Message } from '@bufbuild/protobuf';
import { BatchStatus, CreateBatchResponseSchema } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { RenderImageResponseSchema } from '../../proto/gen/signpost/images/v1/images_pb.ts';

/**
 * The status of a successful REST request by the core's response: the endpoint's, except where that has two. Gateways
 * answer with it, and the core records it.
 */
export function successStatus(endpoint: number, response: Message | undefined): number {
  if (!response) return endpoint;
  if (isMessage(response, CreateBatchResponseSchema)) {
    return response.batch?.status === BatchStatus.COMPLETED ? 201 : 202;
  }
  return isMessage(response, RenderImageResponseSchema) && response.unchanged ? 304 : endpoint;
}
