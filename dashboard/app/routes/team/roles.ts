import { Role } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import type { RoleName } from '../../data/session.ts';

const ROLE_OF = { viewer: Role.VIEWER, editor: Role.EDITOR, admin: Role.ADMIN, owner: Role.OWNER } as const;

/** The role of this name, as calls have it. */
export function roleOf(name: RoleName): Role {
  return ROLE_OF[name];
}

/** The name of a role; one that these pages do not know yet is shown as the least. */
export function roleName(role: Role): RoleName {
  if (role === Role.OWNER) return 'owner';
  if (role === Role.ADMIN) return 'admin';
  return role === Role.EDITOR ? 'editor' : 'viewer';
}
