import { type DescMethod, type DescService, getOption } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { beforeAll, expect, test } from 'vitest';
import { AdmissionService } from '../proto/gen/signpost/access/v1/admission_pb.ts';
import { Caller, requires } from '../proto/gen/signpost/access/v1/requirements_pb.ts';
import { AccountsService, Plan, Role } from '../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { BatchesService } from '../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CodesService } from '../proto/gen/signpost/codes/v1/codes_pb.ts';
import { DomainsService } from '../proto/gen/signpost/domains/v1/domains_pb.ts';
import { EventsService } from '../proto/gen/signpost/events/v1/events_pb.ts';
import { ScansService } from '../proto/gen/signpost/scans/v1/scans_pb.ts';
import { TargetsService } from '../proto/gen/signpost/targets/v1/targets_pb.ts';
import { TaxonomyService } from '../proto/gen/signpost/taxonomy/v1/taxonomy_pb.ts';
import { WebhooksService } from '../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { internal } from './contract/internal.ts';
import { type Dns, startDns } from './harness/dns.ts';
import { type Signpost, startSignpost } from './harness/processes.ts';
import { OWN_SERVICES } from './harness/rpc-services.ts';

/** Those whose calls belong to an account. */
const SERVICES = OWN_SERVICES.filter((service) => service !== AdmissionService && service !== EventsService);

/** Methods that change something, as the contract marks them; streams only tell. */
const changing = SERVICES.flatMap(({ methods }) => methods as DescMethod[]).filter(
  (method) =>
    method.methodKind === 'unary' &&
    method.idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS &&
    // It only reads, but not by GET: an email address would be in the URL.
    method !== AccountsService.method.listMemberships &&
    // A session belongs to a person, not to an account.
    method !== AccountsService.method.endSessions &&
    getOption(method, requires).caller !== Caller.ANYONE,
);

let dns: Dns;
let signpost: Signpost;
beforeAll(async () => {
  dns = await startDns();
  const env = { ROLES: 'rpc', BATCH_WINDOW_MS: '0', DNS_RESOLVERS: dns.address, WEBHOOKS_ALLOW_PRIVATE: 'true' };
  signpost = await startSignpost({ gateways: 0, env });
});

function there<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('an answer lacks what it is about');
  return value;
}

test('every method that changes something leaves who called it in the account’s audit', async () => {
  const created = await internal(signpost, AccountsService).createAccount({ name: 'A', plan: Plan.BUSINESS });
  const accountId = there(created.account).id;
  const acting = <Service extends DescService>(service: Service) => internal(signpost, service, accountId);
  const [accounts, codes, taxonomy] = [acting(AccountsService), acting(CodesService), acting(TaxonomyService)];
  const [domains, webhooks] = [acting(DomainsService), acting(WebhooksService)];
  const target = { targetUrl: 'https://example.com' };

  await accounts.updateAccount({ name: 'B' });
  await accounts.renameAccount({ name: 'C' });
  const { member } = await accounts.addMember({ email: 'anna@example.com', role: Role.ADMIN });
  await accounts.updateMember({ id: there(member).id, role: Role.EDITOR });
  const { token } = await accounts.createSignInLink({ email: 'anna@example.com' });
  await internal(signpost, AccountsService).redeemSignInLink({ token });
  await accounts.removeMember({ id: there(member).id });
  await accounts.rotateKey({});
  await accounts.revokeKey({});

  const { code } = await codes.createCode({ ...target, folder: 'a', tags: ['a'] });
  await codes.createCode({ ...target, folder: 'b', tags: ['b'] });
  const { id } = there(code);
  await codes.updateCode({ id, updateMask: { paths: ['paused'] }, paused: true });
  await acting(TargetsService).setTarget({ id, targetUrl: 'https://example.com/new' });
  await acting(TargetsService).rollBackTarget({ id, version: 1 });
  await acting(TargetsService).changeTargets({ rows: [{ code: { case: 'id', value: id }, ...target }] });
  await codes.deleteCode({ id });
  await codes.restoreCode({ id });
  await codes.updateCodes({ ids: [id], paused: true, removeTags: ['a'] });
  await codes.createStaticCode({ content: { case: 'payload', value: 'x' } });
  await codes.createLandingPageCode({ landingPage: { title: 'x' } });
  await acting(BatchesService).createBatch({ rows: [target] });

  const [folder, otherFolder] = (await taxonomy.listFolders({})).folders.map((each) => each.id);
  const [tag, otherTag] = (await taxonomy.listTags({})).tags.map((each) => each.id);
  await taxonomy.renameFolder({ id: there(folder), name: 'x' });
  await taxonomy.renameTag({ id: there(tag), name: 'x' });
  await taxonomy.mergeFolders({ id: there(folder), into: there(otherFolder) });
  await taxonomy.mergeTags({ id: there(tag), into: there(otherTag) });
  await taxonomy.deleteFolder({ id: there(otherFolder) });
  await taxonomy.deleteTag({ id: there(otherTag) });

  const domain = there((await domains.addDomain({ hostname: 'menu.example.com' })).domain);
  dns.set(domain.txtName, 'TXT', domain.txtValue);
  await domains.verifyDomain({ id: domain.id });
  await domains.removeDomain({ id: domain.id });

  const url = 'http://127.0.0.1:1/hook';
  const endpoint = there((await webhooks.createEndpoint({ url, events: ['qr.created'] })).endpoint);
  await webhooks.updateEndpoint({ id: endpoint.id, url: `${url}s` });
  await webhooks.rotateSecret({ id: endpoint.id });
  const { delivery } = await webhooks.sendTestEvent({ id: endpoint.id });
  await webhooks.resendDelivery({ id: there(delivery).id });
  await webhooks.resendFailed({ endpointId: endpoint.id, since: timestampFromMs(0) });
  await webhooks.deleteEndpoint({ id: endpoint.id });

  await acting(ScansService).deleteAccountScans({});
  await accounts.closeAccount({});

  const { entries } = await accounts.listAuditEntries({ limit: 1_000 });
  const actions = new Set(entries.map(({ action }) => action));
  expect([...actions].sort()).toEqual(changing.map(({ parent, name }) => `${parent.name}/${name}`).sort());
  const [, ...byAnna] = entries.toReversed();
  for (const { actor, subject } of byAnna) {
    expect(actor).toBe('anna@example.com');
    expect(subject).toMatch(/^[a-z]+_[0-9a-z]{26}$/);
  }
});
