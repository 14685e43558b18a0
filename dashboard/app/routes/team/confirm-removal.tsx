import { AccountsService, type Member } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { Confirm } from '../../components/confirm.tsx';
import { useSession } from '../../data/session.ts';
import { showToast } from '../../data/toasts.ts';
import { useAction } from '../../data/use-action.ts';
import { useMessages } from '../../messages/index.ts';

interface ConfirmRemovalProps {
  /** Whom it asks about; undefined while it is closed. */
  readonly member: Member | undefined;
  readonly onClose: () => void;
}

/** Asks before a member is removed, or before people leave the account, who type its name; then does it. */
export function ConfirmRemoval({ member, onClose }: ConfirmRemovalProps) {
  const { team: texts } = useMessages();
  const { member: self, account } = useSession();
  const { run } = useAction(AccountsService.method.removeMember);
  const isSelf = member?.id === self.id;
  const remove = async () => {
    if (!member) return;
    await run({ id: member.id });
    // A person who has left sees another account, or the sign-in page.
    if (isSelf) location.assign('/');
    else showToast(texts.removed(member.email));
  };
  return (
    <Confirm
      title={isSelf ? texts.leaveTitle(account.name) : texts.removeTitle(member?.email ?? '')}
      isOpen={member !== undefined}
      onClose={onClose}
      action={isSelf ? texts.leave : texts.remove}
      name={isSelf ? account.name : undefined}
      onConfirm={remove}
    >
      {isSelf ? texts.leaveText : texts.removeText}
    </Confirm>
  );
}
