import { create, toBinary } from '@bufbuild/protobuf';
import { createClient } from '@connectrpc/connect';
import { createConnectQueryKey } from '@connectrpc/connect-query';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useRouter } from '@tanstack/react-router';
import { useRef } from 'react';
import { MAX_ROWS_BYTES } from '../../../../common/contract/limits.ts';
import { METADATA } from '../../../../common/contract/metadata.ts';
import {
  BatchesService,
  type BatchRowInput,
  type CreateBatchRequest,
  CreateBatchRequestSchema,
} from '../../../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { refreshCodes } from '../../data/code-lists.ts';
import { useErrorText } from '../../data/error-text.ts';
import { isResultUnknown, useIdempotencyKeys } from '../../data/idempotency-key.ts';
import { showPending, showToast } from '../../data/toasts.ts';
import { binaryTransport } from '../../data/transport.ts';
import { useIsMounted } from '../../data/use-is-mounted.ts';
import { useMessages } from '../../messages/index.ts';

/** What applies to all codes of a batch. */
export interface BatchOptions {
  readonly name: string;
  /** For rows without one. */
  readonly folder: string;
  /** In addition to those of a row. */
  readonly tags: readonly string[];
  readonly domainId: string;
  readonly foreground: string;
  readonly background: string;
}

/** The request has more bytes than the core reads. */
class TooLarge extends Error {}

/** How often the page looks for the batch while the core creates the first codes, which can take 20 s, in ms. */
const LOOK_MS = 1_000;

const BATCH_LISTS = createConnectQueryKey({ schema: BatchesService.method.listBatches, cardinality: undefined });

const client = createClient(BatchesService, binaryTransport);

/** The page with the form. */
export const NEW_BATCH = '/batches/new';

/** Creates a batch and leads to its page as soon as its rows are staged. `version`: identifies the rows. */
export function useCreateBatch() {
  const navigate = useNavigate();
  const { history } = useRouter();
  const queries = useQueryClient();
  const { batches, rowSentence } = useMessages();
  const failureText = useBatchFailureText();
  const keys = useIdempotencyKeys();
  const isMounted = useIsMounted();
  // Whether the batch is known to exist, so that its page says how it goes on.
  const isFound = useRef(false);
  // The batch whose page was shown: the person may have come back from there.
  const shown = useRef<string>(undefined);
  // The page is still shown while the one that the person has chosen is loaded.
  const isLeft = () => !isMounted() || history.location.pathname !== NEW_BATCH;
  const show = (batchId: string) => {
    isFound.current = true;
    if (isLeft() || shown.current === batchId) return;
    shown.current = batchId;
    // What was entered is a batch now.
    void navigate({ to: '/batches/$batchId', params: { batchId }, ignoreBlocker: true });
  };
  return useMutation({
    async mutationFn(batch: { rows: readonly BatchRowInput[]; options: BatchOptions; version: string }) {
      const request = requestFrom(batch.rows, batch.options);
      if (toBinary(CreateBatchRequestSchema, request).length > MAX_ROWS_BYTES) throw new TooLarge();
      const key = keys.keyFor(JSON.stringify([batch.version, batch.options]));
      const finished = new AbortController();
      const sent = showPending(batches.sending);
      isFound.current = false;
      shown.current = undefined;
      void findStaged(request, finished.signal).then((id) => {
        if (id === undefined) return;
        sent();
        show(id);
      });
      try {
        return await client.createBatch(request, { headers: { [METADATA.idempotencyKey]: key } });
      } finally {
        finished.abort();
        sent();
      }
    },
    onSettled: (_created, error) => keys.ended(error ?? undefined),
    onError(error) {
      if (!isLeft() || isFound.current) return;
      // The form, which would send the same rows with the same key, is gone.
      const text = isResultUnknown(error) ? batches.leftUnknown : batches.leftFailed(failureText(error));
      showToast(text, { kind: 'failed' });
    },
    onSuccess: ({ batch, warnings }) => {
      void refreshCodes();
      void queries.invalidateQueries({ queryKey: BATCH_LISTS });
      if (warnings.length > 0) showToast(warnings.map(rowSentence).join(' '), { kind: 'failed' });
      if (batch) show(batch.id);
    },
  });
}

/** Why a batch could not be created, in the reader's language. */
export function useBatchFailureText(): (error: unknown) => string {
  const { batches } = useMessages();
  const errorText = useErrorText();
  return (error) => {
    if (error instanceof TooLarge) return batches.tooLarge;
    return isResultUnknown(error) ? batches.unknownResult : errorText(error);
  };
}

function requestFrom(rows: readonly BatchRowInput[], options: BatchOptions) {
  const { name, folder, domainId, foreground, background } = options;
  return create(CreateBatchRequestSchema, {
    rows: rows.map((row) => ({
      ...row,
      ...(row.folder === undefined && folder.trim() !== '' && { folder: folder.trim() }),
    })),
    ...(name.trim() !== '' && { name: name.trim() }),
    ...(domainId !== '' && { domainId }),
    design: { foregroundColor: foreground, backgroundColor: background },
  });
}

/**
 * The id of the batch once its rows are staged: the newest one, if it appeared meanwhile and has the same name and
 * number of rows.
 */
async function findStaged({ rows, name }: CreateBatchRequest, signal: AbortSignal): Promise<string | undefined> {
  const newest = async () => (await client.listBatches({ limit: 1 }, { signal })).batches[0];
  try {
    const before = (await newest())?.id;
    while (!signal.aborted) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      const found = await newest();
      if (!found || found.id === before) continue;
      if (found.counts?.total === rows.length && found.name === name) return found.id;
    }
  } catch {
    // The call that creates the batch reports what went wrong.
  }
  return undefined;
}
