import { relative } from 'node:path';
import type { Settings } from './settings.ts';

/** The message of `npm start` once everything is running: addresses, the key, and a session to copy and paste. */
export function welcome(settings: Settings, apiKey: string): string {
  const { port, corePort, grpcPort, dataDir } = settings;
  const api = `http://localhost:${port}/api/v1`;
  return `
Signpost is running; Ctrl-C stops it.

  REST API and scans   http://localhost:${port}
  core, Connect        http://localhost:${corePort}
  core, gRPC           localhost:${grpcPort}
  logs                 ${relative(process.cwd(), dataDir)}/logs
  API key              ${apiKey}

Create a code, scan it, download its image and see the scan:

  KEY=${apiKey}
  CODE=$(curl -s ${api}/qr-codes -H "Authorization: Bearer $KEY" -d '{"target_url": "https://example.com/menu"}')
  ID=$(echo "$CODE" | grep -o 'qr_[0-9a-z]*' | head -1)
  SCAN_URL=$(echo "$CODE" | grep -o 'http[^"]*/r/[0-9A-Za-z]*')
  curl -i "$SCAN_URL"
  curl -s ${api}/qr-codes/$ID/image -H "Authorization: Bearer $KEY" -o code.png
  sleep 2
  curl -s ${api}/qr-codes/$ID/analytics -H "Authorization: Bearer $KEY"
`;
}
