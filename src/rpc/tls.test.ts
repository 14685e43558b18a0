import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { pino } from 'pino';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { OperatorError } from '../../common/runtime/operator-error.ts';
import { createGrpcClients } from '../../gateway/core/transport.ts';
import { AccountsService, Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { type Certificate, type CertificateAuthority, newAuthority } from '../../test/harness/certificates.ts';
import { bearer, conformance, reasonOf } from './rpc-suite.fixture.ts';
import { type Serving, startServing, WAYS } from './serve.fixture.ts';
import { openTls, type Tls } from './tls.ts';

const logger = pino({ level: 'silent' });
const RELOAD_MS = 50;

let authority: CertificateAuthority;
let server: Certificate;
let tls: Tls;
let serving: Serving;
let client: Certificate;

beforeAll(async () => {
  authority = await newAuthority();
  server = await authority.issue('core');
  client = await authority.issue('billing');
  const { certFile: cert, keyFile: key } = server;
  tls = openTls({ cert, key, clientCa: authority.certFile }, logger, RELOAD_MS);
  serving = await startServing(tls);
});

for (const [name, over] of WAYS) {
  conformance(
    `${name} and TLS`,
    () => serving,
    (interceptors) => over(serving, interceptors, { ca: authority.cert }),
  );
}

describe.each(WAYS)('mutual TLS: %s', (_, over) => {
  const shown = (certificate: Pick<Certificate, 'cert' | 'key'>, headers: Record<string, string> = {}) =>
    over(
      serving,
      [
        (next) => (request) => {
          for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
          return next(request);
        },
      ],
      { ca: authority.cert, cert: certificate.cert, key: certificate.key },
    );

  test('a client with a certificate from the client CA is an internal caller without a token, named by the certificate', async () => {
    const { account } = await createClient(AccountsService, shown(client)).createAccount({
      name: 'A',
      plan: Plan.FREE,
    });
    const acting = { 'signpost-account': account?.id ?? '' };
    const accounts = createClient(AccountsService, shown(client, acting));
    await accounts.updateAccount({ name: 'B' });
    await createClient(AccountsService, shown(client, { ...acting, 'signpost-actor': 'anna' })).updateAccount({
      name: 'C',
    });
    const { entries } = await accounts.listAuditEntries({});
    expect(entries.map(({ actor }) => actor)).toEqual(['anna', 'billing', 'billing']);
  });

  test('credentials sent in addition count as without the certificate', async () => {
    const { apiKey } = await createClient(AccountsService, shown(client)).createAccount({
      name: 'A',
      plan: Plan.BUSINESS,
    });
    const withKey = shown(client, { authorization: `Bearer ${apiKey}` });
    expect((await createClient(CodesService, withKey).listCodes({})).total).toBe(0n);
    expect(await reasonOf(createClient(AccountsService, withKey).listAccounts({}))).toBe('INTERNAL_METHOD');
    const wrong = shown(client, { authorization: 'Bearer x' });
    expect(await reasonOf(createClient(AccountsService, wrong).listAccounts({}))).toBe('INVALID_SERVICE_TOKEN');
  });

  test('a certificate from another CA, or an expired one, gives no access', async () => {
    const otherAuthority = await newAuthority();
    const expired = await authority.issue('billing', -1);
    for (const certificate of [await otherAuthority.issue('billing'), expired]) {
      const error = await createClient(AccountsService, shown(certificate))
        .listAccounts({})
        .catch((thrown: unknown) => thrown);
      expect((error as ConnectError).code).toBe(Code.Unauthenticated);
    }
    expect(
      await reasonOf(createClient(AccountsService, over(serving, [], { ca: authority.cert })).listAccounts({})),
    ).toBe('INVALID_SERVICE_TOKEN');
  });
});

test('a client that trusts only its own CA does not call an impostor', async () => {
  const { cert: ca } = await newAuthority();
  for (const [, over] of WAYS) {
    const accounts = createClient(AccountsService, over(serving, [bearer(serving.tokens[0])], { ca }));
    await expect(accounts.listAccounts({})).rejects.toBeInstanceOf(ConnectError);
  }
});

test('a gateway calls the core over TLS without a client certificate', async () => {
  const grpc = createGrpcClients({
    addresses: [`localhost:${serving.grpcPort}`],
    timeoutMs: 5_000,
    ca: authority.cert,
  });
  expect(await reasonOf(grpc.client(AccountsService).listAccounts({}))).toBe('INVALID_SERVICE_TOKEN');
  grpc.close();
  const untrusting = createGrpcClients({
    addresses: [`localhost:${serving.grpcPort}`],
    timeoutMs: 5_000,
    ca: (await newAuthority()).cert,
  });
  await expect(untrusting.client(AccountsService).listAccounts({})).rejects.toMatchObject({
    code: Code.Unavailable,
  });
  untrusting.close();
});

test('a certificate replaced on disk is used from then on, a broken one is not', async () => {
  const other = await newAuthority();
  const next = await other.issue('core');
  const call = () =>
    Promise.all(
      WAYS.map(([, over]) =>
        createClient(AccountsService, over(serving, [bearer(serving.tokens[0])], { ca: other.cert }))
          .listAccounts({})
          .then(
            () => true,
            () => false,
          ),
      ),
    );
  expect(await call()).toEqual(WAYS.map(() => false));
  // The certificate is replaced before its key: what is read in between does not match.
  await copyFile(next.certFile, server.certFile);
  await new Promise((resolve) => setTimeout(resolve, RELOAD_MS * 2));
  expect(await call()).toEqual(WAYS.map(() => false));
  await copyFile(next.keyFile, server.keyFile);
  await expect.poll(call).toEqual(WAYS.map(() => true));
});

test('a new certificate that could not be put into use is tried again', async () => {
  const [own, next] = [await authority.issue('core'), await authority.issue('core')];
  const watched = openTls({ cert: own.certFile, key: own.keyFile, clientCa: undefined }, logger, RELOAD_MS);
  onTestFinished(() => watched.close());
  let attempts = 0;
  watched.watch(() => {
    if (++attempts === 1) throw new Error('it can’t be used now');
  });
  await copyFile(next.certFile, own.certFile);
  await copyFile(next.keyFile, own.keyFile);
  await expect.poll(() => watched.current.cert.equals(next.cert)).toBe(true);
  expect(attempts).toBe(2);
});

test('unreadable or invalid files give one sentence', () => {
  const { certFile: cert, keyFile: key } = client;
  const missing = join(import.meta.dirname, 'nowhere.pem');
  for (const [files, sentence] of [
    [{ cert: missing, key, clientCa: undefined }, /^TLS_CERT .*nowhere.pem can't be read \(ENOENT\)\.$/],
    [{ cert, key: missing, clientCa: undefined }, /^TLS_KEY .* can't be read/],
    [{ cert, key, clientCa: missing }, /^TLS_CLIENT_CA .* can't be read/],
    [{ cert, key, clientCa: key }, /^TLS_CLIENT_CA .* must be a PEM file of certificates\.$/],
    [{ cert, key: authority.keyFile, clientCa: undefined }, /must be PEM files/],
    [{ cert: import.meta.filename, key, clientCa: undefined }, /must be PEM files/],
  ] as const) {
    expect(() => openTls(files, logger)).toThrow(OperatorError);
    expect(() => openTls(files, logger)).toThrow(sentence);
  }
});
