import { fromJson } from '@bufbuild/protobuf';
import { z } from 'zod';
import { batchJson } from '../../../common/contract/batch-json.ts';
import { METADATA } from '../../../common/contract/metadata.ts';
import { nameOf, namesOf, ROW_STATUS_BY_NAME } from '../../../common/contract/names.ts';
import { LONG_PAGE_LIMIT, PAGE_LIMIT } from '../../../common/contract/ranges.ts';
import { requiredField } from '../../../common/contract/required-field.ts';
import { successStatus } from '../../../common/contract/success-status.ts';
import {
  BatchesService,
  type BatchRow,
  CreateBatchRequestSchema,
} from '../../../proto/gen/signpost/batches/v1/batches_pb.ts';
import type { CoreClients } from '../../core/clients.ts';
import { MAX_BATCH_BODY_BYTES } from '../body/request-limits.ts';
import { type Endpoint, endpoint } from '../endpoint.ts';
import { integer, oneOf } from '../query.ts';
import { preserialized, readBatch } from './batch-body.ts';
import { batchExample, batchSchema, documentedBatchBody, rowSchema } from './batch-schema.ts';
import { count, envelope, limitParameter, offsetParameter, pageSchema } from './page.ts';

/** Storing all rows takes some seconds, and then the core waits for them, by default 20 s; it answers before this. */
const CREATE_TIMEOUT_MS = 60_000;

const ROW_STATUS_NAMES = namesOf(ROW_STATUS_BY_NAME);

/** Batches: create, list, read. Source: POST and GET /api/v1/batches; docs/contract.md, "Batches". */
export function batches(core: CoreClients): Endpoint[] {
  return [
    endpoint({
      id: 'listBatches',
      method: 'GET',
      path: '/api/v1/batches',
      rpc: BatchesService.method.listBatches,
      tag: 'Batches',
      summary: 'List batches',
      description: 'Batches of the account, newest first, without their rows.',
      query: { limit: limitParameter(PAGE_LIMIT), offset: offsetParameter },
      success: { 200: 'A page of batches.' },
      response: {
        schema: z.object({
          success: z.literal(true),
          data: z.array(batchSchema),
          pagination: pageSchema,
          total: count('All batches of the account.'),
        }),
        example: { success: true, data: [batchExample], pagination: { limit: 25, offset: 0 }, total: 1 },
      },
      errors: { 403: ['business_plan_required', 'no_batches'] },
      async handle({ query, options }) {
        const request = { ...integer(query, 'limit'), ...integer(query, 'offset') };
        const page = await core.batches.listBatches(request, options);
        return {
          status: 200,
          body: {
            success: true,
            data: page.batches.map(batchJson),
            pagination: { limit: page.limit, offset: page.offset },
            total: Number(page.total),
          },
        };
      },
    }),
    endpoint({
      id: 'createBatch',
      method: 'POST',
      path: '/api/v1/batches',
      rpc: BatchesService.method.createBatch,
      tag: 'Batches',
      summary: 'Create a batch',
      description:
        'Stores all rows, creates as many codes as it can in about 20 seconds, and the rest in the background. ' +
        'Every row is processed individually: an invalid one fails with a reason, and rows beyond the QR code limit are skipped. ' +
        'A row whose folder or tags are invalid is created without them, with `warnings`. ' +
        'Costs one request of the quota for every 100 rows, at least one.',
      body: {
        schema: documentedBatchBody,
        example: {
          name: 'Tables of the terrace',
          rows: [
            { target_url: 'https://example.com/menu?table=1', name: 'Table 1', external_ref: 'T-1' },
            { target_url: 'https://example.com/menu?table=2', name: 'Table 2', external_ref: 'T-2' },
          ],
          design: { foregroundColor: '#123456' },
        },
        maxBytes: MAX_BATCH_BODY_BYTES,
        // Rows with wrong types take 1 to 2 ms per KiB, which must not be spent on unauthenticated callers.
        bytesBeforeAuthentication: 0,
        read: readBatch,
      },
      idempotent: true,
      timeoutMs: CREATE_TIMEOUT_MS,
      success: {
        201: 'Every row was processed.',
        202: 'The remaining rows are created in the background, usually within a few minutes.',
      },
      headers: { Location: 'The batch.' },
      links: ['getBatch'],
      response: {
        schema: envelope(batchSchema).extend({
          warnings: z
            .array(z.string())
            .meta({ description: 'Present if scanners may be unable to read codes in these colours.' })
            .exactOptional(),
        }),
        example: { success: true, data: batchExample },
      },
      errors: {
        400: ['no_rows', 'unknown_domain', 'invalid_field', 'malformed_json', 'idempotency_key'],
        403: ['batch_limit_exceeded', 'qr_limit_reached', 'business_plan_required', 'no_batches'],
        409: ['key_reused', 'key_in_flight'],
        413: ['too_many_rows', 'batch_too_large'],
        503: ['key_not_stored'],
      },
      async handle({ body, options }) {
        const request = fromJson(CreateBatchRequestSchema, body.fields);
        if (body.rows.length > 0) request.$unknown = [preserialized(body.rows)];
        // The core rejects a batch that costs too much by this number, before it reads the rows.
        const headers = { ...options.headers, [METADATA.rows]: String(body.rowCount) };
        const response = await core.batches.createBatch(request, { ...options, headers });
        const { warnings } = response;
        const batch = batchJson(requiredField(response.batch, 'batch'));
        return {
          status: successStatus(201, response),
          headers: { location: `/api/v1/batches/${batch.id}` },
          body: { success: true, data: batch, ...(warnings.length > 0 ? { warnings } : {}) },
        };
      },
    }),
    endpoint({
      id: 'getBatch',
      method: 'GET',
      path: '/api/v1/batches/{id}',
      rpc: BatchesService.method.getBatch,
      tag: 'Batches',
      summary: 'Read a batch',
      description: 'A batch and a page of its rows in the order sent.',
      query: {
        limit: limitParameter(LONG_PAGE_LIMIT),
        offset: offsetParameter,
        status: {
          description: 'Only rows of this status.',
          schema: { type: 'string', enum: ROW_STATUS_NAMES },
          example: 'failed',
        },
      },
      success: { 200: 'The batch and a page of its rows.' },
      response: {
        schema: z.object({
          success: z.literal(true),
          data: batchSchema.extend({ rows: z.array(rowSchema) }).meta({ id: 'BatchWithRows' }),
          pagination: pageSchema,
          total: count('Rows that match `status`.'),
        }),
        example: {
          success: true,
          data: {
            ...batchExample,
            rows: [
              {
                index: 0,
                status: 'created',
                target_url: 'https://example.com/menu?table=1',
                name: 'Table 1',
                external_ref: 'T-1',
                id: 'qr_01kagcpn9te5gvjxq1rmm30w4h',
                short_code: 'h7Kq2Wd',
                scan_url: 'https://qr.example/r/h7Kq2Wd',
                reason: null,
              },
            ],
          },
          pagination: { limit: 100, offset: 0 },
          total: 1,
        },
      },
      errors: { 400: ['unknown_status'], 403: ['business_plan_required', 'no_batches'], 404: ['no_such_batch'] },
      async handle({ id, query, options }) {
        const status = oneOf(query, 'status', ROW_STATUS_NAMES);
        const request = {
          id,
          ...integer(query, 'limit'),
          ...integer(query, 'offset'),
          ...(status ? { status: ROW_STATUS_BY_NAME[status] } : {}),
        };
        const { batch, rows, limit, offset, total } = await core.batches.getBatch(request, options);
        return {
          status: 200,
          body: {
            success: true,
            data: { ...batchJson(requiredField(batch, 'batch')), rows: rows.map(rowJson) },
            pagination: { limit, offset },
            total,
          },
        };
      },
    }),
  ];
}

function rowJson(row: BatchRow): z.infer<typeof rowSchema> {
  return {
    index: row.index,
    status: nameOf(ROW_STATUS_BY_NAME, row.status),
    target_url: row.targetUrl ?? null,
    name: row.name ?? null,
    external_ref: row.externalRef ?? null,
    id: row.codeId ?? null,
    short_code: row.shortCode ?? null,
    scan_url: row.scanUrl ?? null,
    reason: row.reason ?? null,
    ...(row.warnings.length > 0 ? { warnings: row.warnings } : {}),
  };
}
