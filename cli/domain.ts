import { domainToASCII } from 'node:url';
import { type Command, Option } from 'commander';
import { DOMAIN_STATE_BY_NAME, nameOf } from '../common/contract/names.ts';
import { requiredField } from '../common/contract/required-field.ts';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { type Domain, DomainState } from '../proto/gen/signpost/domains/v1/domains_pb.ts';
import type { CoreClients } from './clients.ts';
import { connectCore, UsageError } from './core.ts';
import { exitUnfulfilled } from './exit-codes.ts';
import { destructive, example, expectConfirmed, ofAccount } from './options.ts';
import { type DisplayRecord, fields, jsonOption, print, table } from './output.ts';

interface Which {
  readonly account: string;
  readonly id?: string;
  readonly hostname?: string;
}

/** `domain …`: manages custom domains. */
export function domainCommands(domain: Command): void {
  const json = jsonOption(domain);

  example(ofAccount(domain.command('add')), 'domain add --account acct_… --hostname menu.example.com')
    .description('add a domain; it is pending until its TXT record is found')
    .requiredOption('--hostname <name>', 'such as menu.example.com')
    .action(async ({ account, hostname }: { account: string; hostname: string }) => {
      const { domains } = await connectCore(process.env, account);
      const added = requiredField((await domains.addDomain({ hostname })).domain, 'domain');
      print(
        json(),
        withProblem(added),
        () => `${fields(shown(added))}\n\nSet this TXT record; domain verify looks for it.`,
      );
    });

  oneOf(domain.command('verify'))
    .description('look up its DNS records now, without waiting for the core’s next check')
    .action(async (which: Which) => {
      const { domains } = await connectCore(process.env, which.account);
      const { id } = await domainOf(domains, which);
      const verified = requiredField((await domains.verifyDomain({ id })).domain, 'domain');
      if (verified.state === DomainState.PENDING || verified.state === DomainState.FAILING) exitUnfulfilled();
      print(
        json(),
        withProblem(verified),
        () => `${fields(shown(verified))}\n\n${verified.problem || 'Nothing is missing.'}`,
      );
    });

  ofAccount(domain.command('list'))
    .description('list the domains of an account and what they lack')
    .action(async ({ account }: { account: string }) => {
      const { domains } = await connectCore(process.env, account);
      const listed = (await domains.listDomains({})).domains;
      print(json(), listed.map(withProblem), () => table(listed.map(withProblem)));
    });

  destructive(oneOf(domain.command('remove')))
    .description('remove a domain; codes printed on it keep resolving on the platform’s host')
    .action(async (which: Which & { yes: boolean }) => {
      const { domains } = await connectCore(process.env, which.account);
      const { id, hostname } = await domainOf(domains, which);
      await expectConfirmed(which, `${hostname} will be removed; no more codes can then be printed on it.`);
      const removed = requiredField((await domains.removeDomain({ id })).domain, 'domain');
      print(json(), withProblem(removed), () => `${removed.hostname} was removed.`);
    });
}

function oneOf(command: Command): Command {
  return ofAccount(command)
    .option('--id <id>', 'domain_…')
    .addOption(new Option('--hostname <name>', 'instead of the id').conflicts('id'));
}

async function domainOf(domains: CoreClients['domains'], { id, hostname }: Which): Promise<Domain> {
  if (id === undefined && hostname === undefined) throw new UsageError('Name the domain by --id or --hostname.');
  const listed = (await domains.listDomains({})).domains;
  const wanted = domainToASCII(hostname ?? '').replace(/\.$/, '');
  const found = listed.find((each) => (id === undefined ? each.hostname === wanted : each.id === id));
  if (found) return found;
  const named = id === undefined ? `--hostname: ${hostname}` : `--id: ${id}`;
  throw new OperatorError(`${named} is not a domain of this account; domain list shows its domains.`);
}

/** A domain and what it lacks. */
function withProblem(domain: Domain): DisplayRecord {
  return { ...shown(domain), problem: domain.problem || null };
}

/** Source: docs/contract.md, "Command line". */
function shown({ id, hostname, state, txtName, txtValue }: Domain): DisplayRecord {
  return { id, hostname, state: nameOf(DOMAIN_STATE_BY_NAME, state), txt_name: txtName, txt_value: txtValue };
}
