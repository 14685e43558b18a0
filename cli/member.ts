import { type Command, Option } from 'commander';
import { nameOf, namesOf, ROLE_BY_NAME, type RoleName } from '../common/contract/names.ts';
import { requiredField } from '../common/contract/required-field.ts';
import type { Member } from '../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { connectCore } from './core.ts';
import { destructive, example, expectConfirmed, ofAccount } from './options.ts';
import { type DisplayRecord, jsonOption, print, printRecord, printRecords } from './output.ts';

/** `member …`: manages the team of an account. */
export function memberCommands(member: Command): void {
  const json = jsonOption(member);

  example(ofAccount(member.command('add')), 'member add --account acct_… --email anna@example.com --role editor')
    .description('add a member to the team')
    .requiredOption('--email <address>', 'the e-mail address')
    .addOption(roleOption())
    .action(async ({ account, email, role }: { account: string; email: string; role: RoleName }) => {
      const { accounts } = await connectCore(process.env, account);
      printRecord(json(), shown((await accounts.addMember({ email, role: ROLE_BY_NAME[role] })).member));
    });

  ofAccount(member.command('update'))
    .description('give a member another role')
    .requiredOption('--id <id>', 'mbr_…')
    .addOption(roleOption())
    .action(async ({ account, id, role }: { account: string; id: string; role: RoleName }) => {
      const { accounts } = await connectCore(process.env, account);
      printRecord(json(), shown((await accounts.updateMember({ id, role: ROLE_BY_NAME[role] })).member));
    });

  destructive(ofAccount(member.command('remove')))
    .description('remove a member from the team')
    .requiredOption('--id <id>', 'mbr_…')
    .action(async ({ account, id, yes }: { account: string; id: string; yes: boolean }) => {
      await expectConfirmed({ yes }, `${id} will be removed from the team.`);
      const { accounts } = await connectCore(process.env, account);
      const removed = shown((await accounts.removeMember({ id })).member);
      print(json(), removed, () => `${removed.email} was removed.`);
    });

  ofAccount(member.command('list'))
    .description('list the team by e-mail address')
    .action(async ({ account }: { account: string }) => {
      const { accounts } = await connectCore(process.env, account);
      printRecords(json(), (await accounts.listMembers({})).members.map(shown));
    });
}

function roleOption(): Option {
  return new Option('--role <role>', 'the role in the team').choices(namesOf(ROLE_BY_NAME)).makeOptionMandatory();
}

function shown(member: Member | undefined): DisplayRecord {
  const { id, email, role } = requiredField(member, 'member');
  return { id, email, role: nameOf(ROLE_BY_NAME, role) };
}
