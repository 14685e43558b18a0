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

test('all invalid variables are named before anything starts', () => {
  expect(() => readSettings({ PORT: '0', PUBLIC_URL: 'sign.example', SAMPLE: 'no' })).toThrow(
    new OperatorError(
      'PORT must be a port: 1 to 65535. PUBLIC_URL must be an http or https address of host and port only. ' +
        'SAMPLE must be true or false.',
    ),
  );
});
