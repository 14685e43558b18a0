import { expect, test } from 'vitest';
import { environmentsOf } from './environments.ts';
import { readSettings } from './settings.ts';

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
