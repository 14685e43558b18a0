import type { Code } from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { useMessages } from '../messages/index.ts';
import { Status } from './page.tsx';

/** Whether a code is active, paused or deleted. */
export function CodeState({ code }: { readonly code: Code }) {
  const { codes } = useMessages();
  if (code.deletedAt) return <Status look="danger">{codes.states.deleted}</Status>;
  return code.paused ? (
    <Status look="warning">{codes.states.paused}</Status>
  ) : (
    <Status look="good">{codes.states.active}</Status>
  );
}
