import { create, fromJson } from '@bufbuild/protobuf';
import { FieldMaskSchema } from '@bufbuild/protobuf/wkt';
import { z } from 'zod';
import { codeJson } from '../../../common/contract/code-json.ts';
import { PAGE_LIMIT } from '../../../common/contract/ranges.ts';
import { requiredField } from '../../../common/contract/required-field.ts';
import {
  CodesService,
  CreateCodeRequestSchema,
  UpdateCodeRequestSchema,
} from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import type { Route } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import type { CoreClients } from '../../core/clients.ts';
import { bodyReader } from '../body/check-body.ts';
import { MAX_BODY_BYTES } from '../body/request-limits.ts';
import { type Endpoint, endpoint } from '../endpoint.ts';
import { allOf, integer, text } from '../query.ts';
import { Refusal } from '../refusal.ts';
import { codeExample, codeSchema, createBody, updateBody } from './code-schema.ts';
import { distinctTags } from './fields.ts';
import { count, cursorPageSchema, envelope, limitParameter, offsetParameter } from './page.ts';

/** Enough for every valid code. Rejecting an invalid body of this size takes 0.1 to 0.3 ms. */
const BYTES_BEFORE_AUTHENTICATION = 16 * 1024;

/** A cursor as it looks. */
const CURSOR_EXAMPLE = 'WyJxcl8wMWthZ2NwbjkiXQ';

const readCreate = bodyReader(createBody);
const readUpdate = bodyReader(updateBody);

const one = { schema: envelope(codeSchema), example: { success: true as const, data: codeExample } };

/**
 * Applies the route of a changed code to scans. `othersFollow`: whether other changes are in progress, whose routes
 * will follow.
 */
export type OnRoute = (route: Route, othersFollow: boolean) => Promise<void>;

/**
 * QR codes: list, create, read, change, delete. `onRoute` is called with the route of a changed code before the
 * response is sent, so that this gateway applies the change to scans at once. Source: docs/contract.md, "Endpoints".
 */
export function qrCodes(core: CoreClients, onRoute: OnRoute): Endpoint[] {
  let changing = 0;
  const changed = async <Response extends { readonly route?: Route | undefined }>(call: Promise<Response>) => {
    changing++;
    const response = await call.finally(() => changing--);
    if (response.route) await onRoute(response.route, changing > 0);
    return response;
  };
  return [
    endpoint({
      id: 'listCodes',
      method: 'GET',
      path: '/api/v1/qr-codes',
      rpc: CodesService.method.listCodes,
      tag: 'QR codes',
      summary: 'List codes',
      description: 'Codes of the account, newest first, without the deleted ones.',
      query: {
        limit: limitParameter(PAGE_LIMIT),
        offset: { ...offsetParameter, description: `${offsetParameter.description} Ignored with \`cursor\`.` },
        cursor: {
          description: '`pagination.next_cursor` of the previous page; stable while codes are created.',
          schema: { type: 'string' },
          example: CURSOR_EXAMPLE,
        },
        folder: {
          description: 'Folder id or name; `none`: only codes without a folder.',
          schema: { type: 'string' },
          example: 'Berlin',
        },
        tag: {
          description:
            'Tag ids or names, repeated or separated by commas: codes with any of them. An unknown tag matches none.',
          schema: { type: 'array', items: { type: 'string' } },
          example: ['menu', 'summer'],
        },
      },
      success: { 200: 'A page of codes.' },
      response: {
        schema: z.object({
          success: z.literal(true),
          data: z.array(codeSchema),
          pagination: cursorPageSchema,
          total: count('Codes that match; with a cursor, from this page onwards.'),
        }),
        example: {
          success: true,
          data: [codeExample],
          pagination: { limit: 25, offset: 0, next_cursor: null },
          total: 1,
        },
      },
      errors: { 400: ['unknown_folder', 'invalid_cursor'], 403: ['business_plan_required'] },
      async handle({ query, options }) {
        const request = {
          ...integer(query, 'limit'),
          ...integer(query, 'offset'),
          ...text(query, 'cursor'),
          ...text(query, 'folder'),
          tags: [...new Set(allOf(query, 'tag').flatMap(tagsIn))],
        };
        const { codes, limit, offset = null, nextCursor = null, total } = await core.codes.listCodes(request, options);
        return {
          status: 200,
          body: {
            success: true,
            data: codes.map(codeJson),
            pagination: { limit, offset, next_cursor: nextCursor },
            total: Number(total),
          },
        };
      },
    }),
    endpoint({
      id: 'createCode',
      method: 'POST',
      path: '/api/v1/qr-codes',
      rpc: CodesService.method.createCode,
      tag: 'QR codes',
      summary: 'Create a code',
      description:
        'Creates a dynamic code. If the folder or the tags can’t be applied, the code is created without them, with ' +
        '`warnings`.',
      body: {
        schema: createBody,
        read: readCreate,
        example: {
          target_url: 'https://example.com/menu',
          name: 'Table 4',
          folder: 'Berlin',
          tags: ['menu', 'summer'],
        },
        maxBytes: MAX_BODY_BYTES,
        bytesBeforeAuthentication: BYTES_BEFORE_AUTHENTICATION,
      },
      idempotent: true,
      success: { 201: 'The code was created.' },
      headers: { Location: 'The code.' },
      links: ['getCode', 'updateCode', 'deleteCode', 'getCodeImage', 'getCodeAnalytics'],
      response: {
        schema: one.schema.extend({
          warnings: z
            .array(z.string())
            .exactOptional()
            .meta({ description: 'One sentence for each reason why a label could not be applied.' }),
        }),
        example: one.example,
      },
      errors: {
        400: ['invalid_field', 'unknown_domain', 'malformed_json', 'idempotency_key'],
        403: ['qr_limit_reached', 'business_plan_required'],
        409: ['key_reused', 'key_in_flight'],
        413: ['too_large'],
        503: ['no_short_code', 'key_not_stored'],
      },
      async handle({ body, options }) {
        const request = fromJson(CreateCodeRequestSchema, body);
        request.tags = distinctTags(request.tags);
        const created = await changed(core.codes.createCode(request, options));
        const { warnings } = created;
        const code = codeJson(requiredField(created.code, 'code'));
        const response = { success: true as const, data: code };
        return {
          status: 201,
          headers: { location: `/api/v1/qr-codes/${code.id}` },
          body: warnings.length > 0 ? { ...response, warnings } : response,
        };
      },
    }),
    endpoint({
      id: 'getCode',
      method: 'GET',
      path: '/api/v1/qr-codes/{id}',
      rpc: CodesService.method.getCode,
      tag: 'QR codes',
      summary: 'Read a code',
      description: 'One code of the account, of any type.',
      success: { 200: 'The code.' },
      response: one,
      errors: { 404: ['no_such_code'] },
      async handle({ id, options }) {
        const { code } = await core.codes.getCode({ id }, options);
        return { status: 200, body: { success: true, data: codeJson(requiredField(code, 'code')) } };
      },
    }),
    endpoint({
      id: 'updateCode',
      method: 'PATCH',
      path: '/api/v1/qr-codes/{id}',
      rpc: CodesService.method.updateCode,
      tag: 'QR codes',
      summary: 'Change a code',
      description: 'Changes only the fields sent, at least one. The print stays valid.',
      body: {
        schema: updateBody,
        read: readUpdate,
        example: { target_url: 'https://example.com/winter-menu' },
        maxBytes: MAX_BODY_BYTES,
        bytesBeforeAuthentication: BYTES_BEFORE_AUTHENTICATION,
      },
      success: { 200: 'The changed code.' },
      response: one,
      errors: {
        400: ['invalid_field', 'no_fields', 'malformed_json'],
        404: ['no_such_code'],
        409: ['no_target'],
        413: ['too_large'],
      },
      async handle({ id, body, options }) {
        const paths = Object.keys(body);
        if (paths.length === 0) {
          const fields = Object.keys(updateBody.shape).join(', ');
          throw new Refusal('NO_FIELDS', `Nothing to change: send at least one of ${fields}.`);
        }
        const request = fromJson(UpdateCodeRequestSchema, body);
        request.id = id;
        request.tags = distinctTags(request.tags);
        request.updateMask = create(FieldMaskSchema, { paths });
        const updated = await changed(core.codes.updateCode(request, options));
        return { status: 200, body: { success: true, data: codeJson(requiredField(updated.code, 'code')) } };
      },
    }),
    endpoint({
      id: 'deleteCode',
      method: 'DELETE',
      path: '/api/v1/qr-codes/{id}',
      rpc: CodesService.method.deleteCode,
      tag: 'QR codes',
      summary: 'Delete a code',
      description: 'The code stops resolving: scans reach a "no longer active" page. Its scan history is kept.',
      success: { 200: 'The code is deleted.' },
      response: {
        schema: envelope(z.object({ id: z.string(), deleted: z.literal(true) }).meta({ id: 'DeletedCode' })),
        example: { success: true, data: { id: codeExample.id, deleted: true } },
      },
      errors: { 404: ['no_such_code'] },
      async handle({ id, options }) {
        const deleted = await changed(core.codes.deleteCode({ id }, options));
        return { status: 200, body: { success: true, data: { id: deleted.id, deleted: true } } };
      },
    }),
  ];
}

/** The tags in a value of `tag`: those between commas, and the whole value, as names may contain commas. */
function tagsIn(value: string): string[] {
  const tags = value.split(',').map((tag) => tag.trim());
  return tags.length > 1 ? [...tags, value.trim()] : tags;
}
