import type { CoreClients } from '../core/clients.ts';
import type { Endpoint } from './endpoint.ts';
import { openApiDocument } from './openapi/openapi-document.ts';
import type { OpenApiDocument } from './openapi/openapi-types.ts';
import { analytics } from './resources/analytics.ts';
import { batches } from './resources/batches.ts';
import { foldersAndTags } from './resources/folders-and-tags.ts';
import { image } from './resources/image.ts';
import { openApi } from './resources/openapi.ts';
import { type OnRoute, qrCodes } from './resources/qr-codes.ts';

/** What the operations need. */
export interface EndpointOptions {
  readonly core: CoreClients;
  /** The base URL for the OpenAPI document. */
  readonly publicUrl: string;
  /** Called with the route of every changed code; the response is sent once it resolves. */
  readonly onRoute: OnRoute;
}

/** All operations of the REST API, and the OpenAPI document that describes them. Calls nothing yet. */
export function describedEndpoints({ core, publicUrl, onRoute }: EndpointOptions): {
  readonly endpoints: readonly Endpoint[];
  readonly document: OpenApiDocument;
} {
  const endpoints = [
    ...qrCodes(core, onRoute),
    ...analytics(core),
    ...image(core),
    ...batches(core),
    ...foldersAndTags(core),
    openApi(core, () => document),
  ];
  const document = openApiDocument(endpoints, publicUrl);
  return { endpoints, document };
}
