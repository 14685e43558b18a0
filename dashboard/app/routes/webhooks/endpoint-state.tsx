import type { Endpoint } from '../../../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { Status } from '../../components/page.tsx';
import { useMessages } from '../../messages/index.ts';

/** Whether events reach an endpoint, in a word. */
export function EndpointState({ endpoint: { enabled, failingSince, verifiedAt } }: { readonly endpoint: Endpoint }) {
  const {
    webhooks: { states },
  } = useMessages();
  if (!enabled) return <Status look="danger">{states.disabled}</Status>;
  if (failingSince) return <Status look="warning">{states.failing}</Status>;
  if (!verifiedAt) return <Status>{states.unverified}</Status>;
  return <Status look="good">{states.working}</Status>;
}
