import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import { failure } from '../../../common/contract/errors.ts';

/** The window of a request as ms since 1970. */
export interface Window {
  readonly from: number;
  readonly to: number;
}

/** The end of the year 9999, the last that a four-digit year can express. */
const LATEST = Date.UTC(10_000, 0) - 1;

/**
 * Reads the window of a validated request, in which both times are present; checks their range and order. Fails with
 * INVALID_FIELD.
 */
export function parseWindow(request: { from?: Timestamp | undefined; to?: Timestamp | undefined }): Window {
  const from = request.from ? timestampMs(request.from) : Number.NaN;
  const to = request.to ? timestampMs(request.to) : Number.NaN;
  if (!(from >= 0 && from <= LATEST)) throw failure('INVALID_FIELD', 'from: must be in the years 1970 to 9999.');
  if (!(to >= from && to <= LATEST)) {
    throw failure('INVALID_FIELD', 'to: must not be before `from`, nor after the year 9999.');
  }
  return { from, to };
}

/**
 * Aligns a window to whole steps, at most `maxSteps`; `to` becomes the start of the last step. `description`: of the
 * limit.
 */
export function alignWindow({ from, to }: Window, step: number, maxSteps: number, description: string): Window {
  const aligned = { from: from - (from % step), to: to - (to % step) };
  if ((aligned.to - aligned.from) / step >= maxSteps) {
    throw failure('INVALID_FIELD', `to: the window is limited to ${description}.`);
  }
  return aligned;
}
