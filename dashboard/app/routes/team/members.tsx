import { createClient } from '@connectrpc/connect';
import { useQueryClient } from '@tanstack/react-query';
import { LogOut, UserMinus } from 'lucide-react';
import { useState } from 'react';
import { AccountsService, type Member, Role } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { Button } from '../../components/button.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { Notice } from '../../components/page.tsx';
import { Select } from '../../components/select.tsx';
import { Table } from '../../components/table.tsx';
import { RelativeTime } from '../../components/time.tsx';
import { refreshServices } from '../../data/queries.ts';
import { ROLES, type RoleName, sessionQuery, useMay, useSession } from '../../data/session.ts';
import { showToast } from '../../data/toasts.ts';
import { transport } from '../../data/transport.ts';
import { useAction } from '../../data/use-action.ts';
import { useUndo } from '../../data/use-undo.ts';
import { useMessages } from '../../messages/index.ts';
import { roleName, roleOf } from './roles.ts';
import styles from './team.module.css';

const accounts = createClient(AccountsService, transport);

/** The members. Admins change and remove all but owners, whom only owners change; the last owner stays. */
export function Members({ members }: { readonly members: readonly Member[] }) {
  const { team: texts, shell, common } = useMessages();
  const { member: self, account } = useSession();
  const isOwner = useMay('owner');
  const isAdmin = useMay('admin');
  const queries = useQueryClient();
  const [leaving, setLeaving] = useState<Member>();
  const [asked, setAsked] = useState<{ readonly member: Member; readonly role: RoleName }>();
  const update = useAction(AccountsService.method.updateMember);
  const remove = useAction(AccountsService.method.removeMember);
  const undo = useUndo();
  const isLastOwner = isOwner && members.filter(({ role }) => role === Role.OWNER).length === 1;
  const mayChange = ({ role }: Member) => (role === Role.OWNER ? isOwner && !isLastOwner : isAdmin);
  const isSelf = leaving?.id === self.id;
  const isOwnRole = asked?.member.id === self.id;
  const changeRole = async ({ id, email }: Member, role: RoleName, takeBack?: () => Promise<void>) => {
    await update.run({ id, role: roleOf(role) });
    showToast(texts.changed(email, shell.roles[role]), takeBack && { undo: () => void undo(takeBack) });
    if (id === self.id) await queries.invalidateQueries({ queryKey: sessionQuery.queryKey });
  };
  const takeBackRole = async ({ id, email, role }: Member, changed: Role) => {
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
  const changeOthers = (member: Member, role: RoleName) =>
    changeRole(member, role, () => takeBackRole(member, roleOf(role)));
  const chooseRole = (member: Member, role: RoleName) => {
    // An arrow key is enough to choose another role. People can't give themselves theirs back, and owners can do
    // everything.
    if (member.id === self.id || role === 'owner') setAsked({ member, role });
    else void changeOthers(member, role).catch(() => undefined);
  };
  const removeLeaving = async () => {
    if (!leaving) return;
    await remove.run({ id: leaving.id });
    // A person who has left sees another account, or the sign-in page.
    if (isSelf) location.assign('/');
    else showToast(texts.removed(leaving.email));
  };
  return (
    <>
      {isLastOwner && <Notice>{texts.lastOwner}</Notice>}
      <Table
        caption={texts.members}
        rows={members}
        keyOf={({ id }) => id}
        columns={[
          {
            id: 'email',
            title: texts.email,
            isRowHeader: true,
            cell: ({ id, email }) => (
              <>
                {email} {id === self.id && <span className={styles.you}>({texts.you})</span>}
              </>
            ),
          },
          {
            id: 'role',
            title: texts.role,
            cell: (member) =>
              mayChange(member) ? (
                <div className={styles.role}>
                  <Select
                    label={texts.roleOf(member.email)}
                    isLabelHidden
                    value={roleName(member.role)}
                    onChange={(role) => chooseRole(member, role)}
                    options={ROLES.filter((each) => isOwner || each !== 'owner').map((id) => ({
                      id,
                      label: shell.roles[id],
                    }))}
                  />
                </div>
              ) : (
                shell.roles[roleName(member.role)]
              ),
          },
          { id: 'added', title: texts.added, cell: ({ createdAt }) => <RelativeTime instant={createdAt} /> },
          ...(isAdmin
            ? [
                {
                  id: 'actions',
                  title: common.actions,
                  isActions: true,
                  cell: (member: Member) =>
                    mayChange(member) && (
                      <Button
                        look="quiet"
                        icon={member.id === self.id ? LogOut : UserMinus}
                        {...(member.id !== self.id && { 'aria-label': texts.removeOf(member.email) })}
                        onPress={() => setLeaving(member)}
                      >
                        {member.id === self.id ? texts.leave : texts.remove}
                      </Button>
                    ),
                },
              ]
            : []),
        ]}
      />
      {!isAdmin && <p className={styles.you}>{texts.leaveAsk}</p>}
      <Confirm
        title={isSelf ? texts.leaveTitle(account.name) : texts.removeTitle(leaving?.email ?? '')}
        isOpen={leaving !== undefined}
        onClose={() => setLeaving(undefined)}
        action={isSelf ? texts.leave : texts.remove}
        name={isSelf ? account.name : undefined}
        onConfirm={removeLeaving}
      >
        {isSelf ? texts.leaveText : texts.removeText}
      </Confirm>
      {asked && (
        <Confirm
          title={isOwnRole ? texts.ownRoleTitle(shell.roles[asked.role]) : texts.ownerTitle(asked.member.email)}
          isOpen
          onClose={() => setAsked(undefined)}
          action={isOwnRole ? texts.ownRoleAction : texts.ownerAction}
          onConfirm={() => (isOwnRole ? changeRole : changeOthers)(asked.member, asked.role)}
        >
          {!isOwnRole ? texts.ownerText : isOwner ? texts.ownRoleOfOwner : texts.ownRole}
        </Confirm>
      )}
    </>
  );
}
