import { expect, test } from 'vitest';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { readSettings } from './settings.ts';

test('without variables the ports are those of the programs, and an empty variable is none', () => {
  expect(readSettings({ PORT: '', CORE_PORT: '9081', DASHBOARD: 'false' })).toMatchObject({
    port: 8080,
    corePort: 9081,
    grpcPort: 50051,
    dashboardPort: undefined,
    publicUrl: 'http://localhost:8080',
  });
});

test.each([
  ['', 'http://localhost:8080', 'http://localhost:8090'],
  ['0.0.0.0', 'http://localhost:8080', 'http://localhost:8090'],
  ['127.0.0.2', 'http://127.0.0.2:8080', 'http://127.0.0.2:8090'],
  ['::1', 'http://[::1]:8080', 'http://[::1]:8090'],
  ['192.0.2.1', 'http://192.0.2.1:8080', undefined],
])('with LISTEN_HOST “%s” the addresses are those that it listens on', (LISTEN_HOST, publicUrl, dashboardUrl) => {
  expect(readSettings({ LISTEN_HOST })).toMatchObject({ publicUrl, dashboardUrl });
  const given = { PUBLIC_URL: 'https://sign.example', DASHBOARD_URL: 'https://signpost.example' };
  expect(readSettings({ LISTEN_HOST, ...given })).toMatchObject({
    publicUrl: 'https://sign.example',
    dashboardUrl: 'https://signpost.example',
  });
});

test('all invalid variables are named before anything starts', () => {
  expect(() => readSettings({ PORT: '0', PUBLIC_URL: 'sign.example', SAMPLE: 'no' })).toThrow(
    new OperatorError(
      'PORT must be a port: 1 to 65535. PUBLIC_URL must be an http or https address of host and port only. ' +
        'SAMPLE must be true or false.',
    ),
  );
});

test.each([
  ['8087', 'METRICS_PORT 8087 and the 3 ports after it are used, among them DASHBOARD_PORT 8090.'],
  ['8081', 'METRICS_PORT 8081 and the 3 ports after it are used, among them CORE_PORT 8081.'],
  ['65533', 'METRICS_PORT must be a port from 1 to 65532, whose following 3 are used, too.'],
])('METRICS_PORT %s, with which a process could not start, is an error', (METRICS_PORT, sentence) => {
  expect(() => readSettings({ METRICS_PORT })).toThrow(new OperatorError(sentence));
});

test('two equal ports are an error, except that of a dashboard that is not started', () => {
  expect(() => readSettings({ PORT: '8090' })).toThrow(
    new OperatorError('PORT and DASHBOARD_PORT must differ: both are 8090.'),
  );
  expect(() => readSettings({ CORE_PORT: '9000', GRPC_PORT: '9000' })).toThrow(
    new OperatorError('CORE_PORT and GRPC_PORT must differ: both are 9000.'),
  );
  expect(() => readSettings({ PORT: '8090', DASHBOARD: 'false' })).not.toThrow();
});

test('METRICS_PORT may be beside the other ports', () => {
  for (const METRICS_PORT of ['8086', '8091', '65532', '']) expect(() => readSettings({ METRICS_PORT })).not.toThrow();
  expect(() => readSettings({ METRICS_PORT: '8087', DASHBOARD: 'false' })).not.toThrow();
});
