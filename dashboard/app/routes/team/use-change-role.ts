import { createClient } from '@connectrpc/connect';
import { useQueryClient } from '@tanstack/react-query';
import { AccountsService, type Member, type Role } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { refreshServices } from '../../data/queries.ts';
import { type RoleName, sessionQuery, useSession } from '../../data/session.ts';
import { showToast } from '../../data/toasts.ts';
import { transport } from '../../data/transport.ts';
import { useAction } from '../../data/use-action.ts';
import { useUndo } from '../../data/use-undo.ts';
import { useMessages } from '../../messages/index.ts';
import { roleName, roleOf } from './roles.ts';

const accounts = createClient(AccountsService, transport);

/**
 * Returns a function that gives a member another role, says so, and offers to take it back. It offers nothing to people
 * who change their own: they can't give it back to themselves.
 */
export function useChangeRole(): (member: Member, role: RoleName) => Promise<void> {
  const { team: texts, shell } = useMessages();
  const { member: self } = useSession();
  const queries = useQueryClient();
  const update = useAction(AccountsService.method.updateMember);
  const undo = useUndo();
  const takeBack = async ({ id, email, role }: Member, changed: Role) => {
    try {
      const now = (await accounts.listMembers({})).members.find((member) => member.id === id)?.role;
      // An undo whose answer was lost has given the role back already.
      if (now !== changed && now !== role) return showToast(texts.notUndone(email), { kind: 'failed' });
      if (now === changed) await accounts.updateMember({ id, role });
      showToast(texts.changed(email, shell.roles[roleName(role)]));
    } finally {
      void refreshServices(AccountsService);
    }
  };
  return async (member, role) => {
    const { id, email } = member;
    const changed = roleOf(role);
    await update.run({ id, role: changed });
    const text = texts.changed(email, shell.roles[role]);
    if (id !== self.id) return showToast(text, { undo: () => void undo(() => takeBack(member, changed)) });
    showToast(text);
    await queries.invalidateQueries({ queryKey: sessionQuery.queryKey });
  };
}
