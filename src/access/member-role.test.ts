import { create, type DescMethod, type DescMethodUnary } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import { createAsyncIterable } from '@connectrpc/connect/protocol';
import { createConnectTransport } from '@connectrpc/connect-node';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { ROLE_BY_NAME, type RoleName } from '../../common/contract/names.ts';
import { Caller, MemberRole } from '../../proto/gen/signpost/access/v1/requirements_pb.ts';
import { AccountsService } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { internal } from '../../test/contract/internal.ts';
import { type Signpost, startSignpost } from '../../test/harness/processes.ts';
import { OWN_SERVICES } from '../../test/harness/rpc-services.ts';
import { requirementsOf } from './requirements.ts';

/** From the lowest to the highest. */
const ROLES: readonly RoleName[] = ['viewer', 'editor', 'admin', 'owner'];
const REJECTED_BY_ROLE = ['ROLE_REQUIRED', 'NOT_A_MEMBER', 'INTERNAL_METHOD'];

const METHODS = OWN_SERVICES.flatMap(({ methods }) => methods);

let signpost: Signpost;
let pool: pg.Pool;
beforeAll(async () => {
  // Without other roles, nothing but calls changes the database.
  signpost = await startSignpost({ gateways: 0, env: { ROLES: 'rpc' } });
  pool = new pg.Pool({ connectionString: signpost.databaseUrl });
});
afterAll(() => pool.end());

const nameOf = (method: DescMethod) => `${method.parent.name}/${method.name}`;

const isUnary = (method: DescMethod): method is DescMethodUnary => method.methodKind === 'unary';

/** The roles that a method's declaration allows. */
function allowed(method: DescMethod): readonly RoleName[] {
  const { caller, role } = requirementsOf(method);
  if (caller === Caller.SERVICE || role === MemberRole.NONE) return [];
  return ROLES.slice(role - MemberRole.VIEWER);
}

type Metadata = Readonly<Record<string, string>>;

/** An account with a member of each role: the metadata of calls as each of them. */
interface Team {
  readonly id: string;
  readonly as: Readonly<Record<RoleName, Metadata>>;
}

async function team(): Promise<Team> {
  const { accountId: id } = await signpost.createAccount();
  const accounts = internal(signpost, AccountsService, id);
  const members = await Promise.all(
    ROLES.map(async (role) => {
      const { member } = await accounts.addMember({ email: `${role}@example.com`, role: ROLE_BY_NAME[role] });
      const metadata: Metadata = { 'signpost-account': id, 'signpost-member': member?.id ?? '' };
      return [role, metadata] as const;
    }),
  );
  return { id, as: Object.fromEntries(members) as unknown as Team['as'] };
}

/** Calls a method with an empty message. Returns the reason of the error, or `succeeded`. */
async function call(method: DescMethod, metadata: Metadata): Promise<string> {
  const transport = createConnectTransport({ baseUrl: `http://127.0.0.1:${signpost.corePort}`, httpVersion: '1.1' });
  const headers = { authorization: `Bearer ${signpost.serviceToken}`, ...metadata };
  try {
    if (isUnary(method)) {
      await transport.unary(method, undefined, 30_000, headers, create(method.input));
    } else {
      const messages = createAsyncIterable([create(method.input)]);
      const { message } = await transport.stream(method as never, undefined, 30_000, headers, messages as never);
      for await (const _ of message);
    }
    return 'succeeded';
  } catch (error) {
    return readFailure(error).reason;
  }
}

/** Calls a method with bytes that are no message. */
async function callMalformed(method: DescMethod, metadata: Metadata): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${signpost.corePort}/${method.parent.typeName}/${method.name}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${signpost.serviceToken}`,
      'content-type': 'application/proto',
      ...metadata,
    },
    body: Buffer.from([0xff]),
  });
  const { details } = (await response.json()) as { details: { debug?: { reason?: string } }[] };
  return details.find(({ debug }) => debug?.reason)?.debug?.reason ?? '';
}

/** A digest of every table. */
async function contents(): Promise<Record<string, string>> {
  const { rows } = await pool.query<{ name: string }>(
    `select relname as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind = 'r' order by relname`,
  );
  const digests = rows.map(async ({ name }) => {
    const { rows } = await pool.query<{ digest: string }>(
      `select md5(coalesce(string_agg(t::text, ' ' order by t::text), '')) as digest from "${name}" t`,
    );
    return [name, rows[0]?.digest ?? ''] as const;
  });
  return Object.fromEntries(await Promise.all(digests));
}

test('a call that the role of its member does not allow is rejected before its message is read, and changes nothing', async () => {
  const { as } = await team();
  const before = await contents();
  expect(Object.keys(before).length).toBeGreaterThan(30);
  for (const method of METHODS) {
    const roles = allowed(method);
    const reason = roles.length === 0 ? 'INTERNAL_METHOD' : 'ROLE_REQUIRED';
    for (const role of ROLES.filter((each) => !roles.includes(each))) {
      expect([nameOf(method), role, await call(method, as[role])]).toEqual([nameOf(method), role, reason]);
      if (!isUnary(method)) continue;
      expect([nameOf(method), role, await callMalformed(method, as[role])]).toEqual([nameOf(method), role, reason]);
    }
  }
  expect(await contents()).toEqual(before);
});

test('every other call is admitted', async () => {
  for (const method of METHODS) {
    const roles = allowed(method);
    // An account for each method: its owner may close it.
    const { as } = roles.length > 0 ? await team() : { as: undefined };
    for (const role of roles) {
      const reason = await call(method, as?.[role] ?? {});
      expect(REJECTED_BY_ROLE, `${nameOf(method)} as ${role}`).not.toContain(reason);
      if (reason === 'INTERNAL') throw new Error(`${nameOf(method)} as ${role} failed`);
    }
  }
});

test('viewers may call whatever changes nothing, and nothing else', () => {
  const forMembers = METHODS.filter((method) => allowed(method).length > 0);
  const readOnly = forMembers.filter(
    ({ idempotency }) => idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS,
  );
  expect(forMembers.filter((method) => allowed(method).includes('viewer')).map(nameOf)).toEqual(readOnly.map(nameOf));
});

test('the roles above editor, and what no member may call, are as documented', () => {
  const lowest = (role: RoleName | undefined) =>
    METHODS.filter((method) => allowed(method)[0] === role)
      .map(nameOf)
      .sort();
  expect(lowest('admin')).toEqual([
    'AccountsService/AddMember',
    'AccountsService/RemoveMember',
    'AccountsService/RenameAccount',
    'AccountsService/UpdateMember',
    'DomainsService/AddDomain',
    'DomainsService/RemoveDomain',
    'DomainsService/VerifyDomain',
    'WebhooksService/CreateEndpoint',
    'WebhooksService/DeleteEndpoint',
    'WebhooksService/ResendDelivery',
    'WebhooksService/ResendFailed',
    'WebhooksService/RotateSecret',
    'WebhooksService/SendTestEvent',
    'WebhooksService/UpdateEndpoint',
  ]);
  expect(lowest('owner')).toEqual([
    'AccountsService/CloseAccount',
    'AccountsService/RevokeKey',
    'AccountsService/RotateKey',
  ]);
  expect(lowest(undefined)).toEqual([
    'AccountsService/CreateAccount',
    'AccountsService/CreateSignInLink',
    'AccountsService/EndSessions',
    'AccountsService/ListAccounts',
    'AccountsService/ListEndedSessions',
    'AccountsService/ListMemberships',
    'AccountsService/RedeemSignInLink',
    'AccountsService/UpdateAccount',
    'AdmissionService/Admit',
    'AdmissionService/Authenticate',
    'AdmissionService/Refuse',
    'DomainsService/CheckHost',
    'EventsService/AuditEvents',
    'EventsService/RepublishEvents',
    'ScansService/AuditScans',
    'ScansService/DeleteAccountScans',
  ]);
});

test('only a member of the account itself can be named, and a removed one no longer', async () => {
  const [{ id, as }, other] = [await team(), await team()];
  const { getAccount } = AccountsService.method;
  const memberId = as.editor['signpost-member'] ?? '';
  for (const named of [
    '',
    'x',
    'mbr_01kagcpn9te5gvjxq1rmm30w4h',
    other.as.owner['signpost-member'] ?? '',
    `${memberId}, ${memberId}`,
  ]) {
    expect(await call(getAccount, { 'signpost-account': id, 'signpost-member': named })).toBe('NOT_A_MEMBER');
  }
  expect(await call(getAccount, as.editor)).toBe('succeeded');
  await internal(signpost, AccountsService, id).removeMember({ id: memberId });
  expect(await call(getAccount, as.editor)).toBe('NOT_A_MEMBER');
});
