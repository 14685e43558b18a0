import { createHash } from 'node:crypto';
import { z } from 'zod';
import { AdmissionService } from '../../../proto/gen/signpost/access/v1/admission_pb.ts';
import type { CoreClients } from '../../core/clients.ts';
import { recordedAs } from '../call-metadata.ts';
import { type Endpoint, endpoint } from '../endpoint.ts';
import { isCurrent } from '../entity-tags.ts';
import { VERSION } from '../openapi/openapi-document.ts';

/** Returns the OpenAPI document to any valid key. Source: GET /api/v1/openapi. */
export function openApi(core: CoreClients, document: () => Record<string, unknown>): Endpoint {
  let etag = '';
  return endpoint({
    id: 'getOpenApi',
    method: 'GET',
    path: '/api/v1/openapi',
    rpc: AdmissionService.method.admit,
    tag: 'This description',
    summary: 'Read the OpenAPI document',
    description: 'This reference in machine-readable form: OpenAPI 3.1.',
    success: { 200: 'The document.', 304: 'The document in `If-None-Match` is still current.' },
    headers: { ETag: 'Changes with the document.' },
    response: {
      schema: z.record(z.string(), z.unknown()).meta({ description: 'An OpenAPI 3.1 document.' }),
      example: { openapi: '3.1.0', info: { title: 'Signpost', version: VERSION } },
    },
    errors: {},
    async handle({ headers: received, options }) {
      etag ||= `"${createHash('sha256').update(JSON.stringify(document())).digest('base64url')}"`;
      const status = isCurrent(etag, received['if-none-match']) ? 304 : 200;
      await core.admission.admit({}, recordedAs(status, options));
      const headers = { etag, 'cache-control': 'private, no-cache' };
      return { status, headers, body: status === 304 ? undefined : document() };
    },
  });
}
