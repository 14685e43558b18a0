import type { Member } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { Confirm } from '../../components/confirm.tsx';
import { type RoleName, useMay, useSession } from '../../data/session.ts';
import { useMessages } from '../../messages/index.ts';

interface ConfirmRoleProps {
  readonly member: Member;
  readonly role: RoleName;
  readonly onClose: () => void;
  readonly onConfirm: () => Promise<void>;
}

/** Asks before people change their own role, or make another member an owner. */
export function ConfirmRole({ member, role, onClose, onConfirm }: ConfirmRoleProps) {
  const { team: texts, shell } = useMessages();
  const { member: self } = useSession();
  const isOwner = useMay('owner');
  const isOwnRole = member.id === self.id;
  return (
    <Confirm
      title={isOwnRole ? texts.ownRoleTitle(shell.roles[role]) : texts.ownerTitle(member.email)}
      isOpen
      onClose={onClose}
      action={isOwnRole ? texts.ownRoleAction : texts.ownerAction}
      onConfirm={onConfirm}
    >
      {!isOwnRole ? texts.ownerText : isOwner ? texts.ownRoleOfOwner : texts.ownRole}
    </Confirm>
  );
}
