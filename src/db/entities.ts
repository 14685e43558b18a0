import { Account } from '../accounts/account.ts';
import { MemberEntity } from '../accounts/member.ts';
import { DomainEntity } from '../domains/domain.ts';

/** Every entity of the rooms. */
export const entities = [Account, DomainEntity, MemberEntity];
