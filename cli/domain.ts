import { domainToASCII } from 'node:url';
import type { Command } from 'commander';
import { DOMAIN_STATE_BY_NAME, nameOf } from '../common/contract/names.ts';
import { OperatorError } from '../common/runtime/operator-error.ts';
import type { Domain } from '../proto/gen/signpost/domains/v1/domains_pb.ts';
import { type Core, connectCore, there, UsageError } from './core.ts';
import { example, ofAccount } from './options.ts';
import { fields, jsonWanted, print, type Shown, table } from './output.ts';

interface Which {
  readonly account: string;
  readonly id?: string;
  readonly hostname?: string;
}

/** `domain …`: custom domains that codes are printed on. */
export function domainCommands(program: Command): void {
  const json = jsonWanted(program);
  const domain = program.command('domain').description('custom domains that codes are printed on');

  example(ofAccount(domain.command('add')), 'domain add --account acct_… --hostname menu.example.com')
    .description('add a domain; it is pending until its TXT record is seen')
    .requiredOption('--hostname <name>', 'such as menu.example.com')
    .action(async ({ account, hostname }: { account: string; hostname: string }) => {
      const { domains } = await connectCore(process.env, account);
      const added = there((await domains.addDomain({ hostname })).domain);
      print(json(), shown(added), () => `${fields(shown(added))}\n\nSet this TXT record; domain verify looks for it.`);
    });

  oneOf(domain.command('verify'))
    .description('look its DNS records up now, instead of when the core does by itself')
    .action(async (which: Which) => {
      const { domains } = await connectCore(process.env, which.account);
      const verified = there((await domains.verifyDomain({ id: await idOf(domains, which) })).domain);
      print(
        json(),
        shown(verified),
        () => `${fields(shown(verified))}\n\n${verified.problem || 'Nothing is missing.'}`,
      );
    });

  ofAccount(domain.command('list'))
    .description('the domains of an account and what they lack')
    .action(async ({ account }: { account: string }) => {
      const { domains } = await connectCore(process.env, account);
      const listed = (await domains.listDomains({})).domains;
      print(json(), listed.map(shown), () => table(listed.map((each) => ({ ...shown(each), problem: each.problem }))));
    });

  oneOf(domain.command('remove'))
    .description('remove a domain: what was printed on it resolves on the platform’s host')
    .action(async (which: Which) => {
      const { domains } = await connectCore(process.env, which.account);
      const removed = there((await domains.removeDomain({ id: await idOf(domains, which) })).domain);
      print(json(), shown(removed), () => `${removed.hostname} was removed.`);
    });
}

function oneOf(command: Command): Command {
  return ofAccount(command).option('--id <id>', 'domain_…').option('--hostname <name>', 'instead of the id');
}

async function idOf(domains: Core['domains'], { id, hostname }: Which): Promise<string> {
  if (id !== undefined) return id;
  if (hostname === undefined) throw new UsageError('Name the domain by --id or --hostname.');
  const listed = (await domains.listDomains({})).domains;
  const wanted = domainToASCII(hostname).replace(/\.$/, '');
  const found = listed.find((each) => each.hostname === wanted);
  if (!found) throw new OperatorError(`${hostname} is no domain of this account; domain list shows what is.`);
  return found.id;
}

/** Source: docs/contract.md, "Command line". */
function shown({ id, hostname, state, txtName, txtValue }: Domain): Shown {
  return { id, hostname, state: nameOf(DOMAIN_STATE_BY_NAME, state), txt_name: txtName, txt_value: txtValue };
}
