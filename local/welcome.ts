import { relative } from 'node:path';
import { session } from './session.ts';
import type { Settings } from './settings.ts';

/** The message of `npm start` once everything is running: addresses, the key, and a session to copy and paste. */
export function welcome(settings: Settings, apiKey: string): string {
  const { port, corePort, grpcPort, dataDir } = settings;
  return `
Signpost is running; Ctrl-C stops it.

  REST API and scans   http://localhost:${port}
  core, Connect        http://localhost:${corePort}
  core, gRPC           localhost:${grpcPort}
  logs                 ${relative(process.cwd(), dataDir)}/logs
  API key              ${apiKey}

${session(`http://localhost:${port}`, apiKey)}`;
}
