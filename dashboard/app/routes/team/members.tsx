import { LogOut, UserMinus } from 'lucide-react';
import { useState } from 'react';
import { type Member, Role } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { Button } from '../../components/button.tsx';
import { Notice } from '../../components/page.tsx';
import { Select } from '../../components/select.tsx';
import { Table } from '../../components/table.tsx';
import { RelativeTime } from '../../components/time.tsx';
import { ROLES, type RoleName, useMay, useSession } from '../../data/session.ts';
import { useMessages } from '../../messages/index.ts';
import { ConfirmRemoval } from './confirm-removal.tsx';
import { ConfirmRole } from './confirm-role.tsx';
import { roleName } from './roles.ts';
import styles from './team.module.css';
import { useChangeRole } from './use-change-role.ts';

/** The members. Admins change and remove all but owners, whom only owners change; the last owner stays. */
export function Members({ members }: { readonly members: readonly Member[] }) {
  const { team: texts, shell, common } = useMessages();
  const { member: self } = useSession();
  const isOwner = useMay('owner');
  const isAdmin = useMay('admin');
  const [leaving, setLeaving] = useState<Member>();
  const [asked, setAsked] = useState<{ readonly member: Member; readonly role: RoleName }>();
  const changeRole = useChangeRole();
  const isLastOwner = isOwner && members.filter(({ role }) => role === Role.OWNER).length === 1;
  const mayChange = ({ role }: Member) => (role === Role.OWNER ? isOwner && !isLastOwner : isAdmin);
  const chooseRole = (member: Member, role: RoleName) => {
    // An arrow key is enough to choose another role. People can't give themselves theirs back, and owners can do
    // everything.
    if (member.id === self.id || role === 'owner') setAsked({ member, role });
    else void changeRole(member, role).catch(() => undefined);
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
      <ConfirmRemoval member={leaving} onClose={() => setLeaving(undefined)} />
      {asked && (
        <ConfirmRole
          {...asked}
          onClose={() => setAsked(undefined)}
          onConfirm={() => changeRole(asked.member, asked.role)}
        />
      )}
    </>
  );
}
