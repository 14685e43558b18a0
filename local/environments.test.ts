import { expect, test } from 'vitest';
import { environmentsOf } from './environments.ts';
import { readSettings } from './settings.ts';

test('each process has a port of its own for its metrics, or none', () => {
  const database = { url: 'postgres://core@localhost/signpost', gatewayUrl: 'postgres://gateway@localhost/signpost' };
  const portsWith = (given: NodeJS.ProcessEnv) => {
    const secrets = { serviceToken: 'a', secretKey: 'b' };
    const { rpc, worker, gateway, dashboard } = environmentsOf(given, readSettings({}), database, secrets);
    return [rpc, worker, gateway, dashboard(8090)].map(({ METRICS_PORT }) => METRICS_PORT);
  };
  expect(portsWith({ METRICS_PORT: '9464' })).toEqual(['9464', '9465', '9466', '9467']);
  expect(portsWith({})).toEqual(Array(4).fill(undefined));
});

test('the gateway gets no secret of the cores or the dashboard', () => {
  const secret = 'a secret';
  const given = { FORMER_SECRET_KEY: secret, OIDC_CLIENT_SECRET: secret, SERVICE_TOKEN: secret, SECRET_KEY: secret };
  const database = { url: 'postgres://core@localhost/signpost', gatewayUrl: 'postgres://gateway@localhost/signpost' };
  const secrets = { serviceToken: secret, secretKey: secret };
  const { gateway, worker, dashboard } = environmentsOf(given, readSettings({}), database, secrets);
  expect(Object.values(gateway)).not.toContain(secret);
  expect(worker.FORMER_SECRET_KEY).toBe(secret);
  expect(dashboard(8090).OIDC_CLIENT_SECRET).toBe(secret);
});

test('cores listen on this machine only, and the dashboard sends its token to no other one', () => {
  const given = { LISTEN_HOST: '192.0.2.1', CORE_HOST: 'core.example' };
  const database = { url: 'postgres://core@localhost/signpost', gatewayUrl: 'postgres://gateway@localhost/signpost' };
  const secrets = { serviceToken: 'a', secretKey: 'b' };
  const { core, rpc, worker, gateway, dashboard } = environmentsOf(given, readSettings({}), database, secrets);
  for (const { LISTEN_HOST, CORE_HOST } of [core, rpc, worker])
    expect([LISTEN_HOST, CORE_HOST]).toEqual(['127.0.0.1', '127.0.0.1']);
  for (const { LISTEN_HOST, CORE_HOST } of [gateway, dashboard(8090)])
    expect([LISTEN_HOST, CORE_HOST]).toEqual(['192.0.2.1', '127.0.0.1']);
});
