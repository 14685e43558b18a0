import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import { failure } from '../../../common/contract/errors.ts';

/** The window of a request as ms since 1970. Errors: `invalid_argument`. */
export interface Window {
  readonly from: number;
  readonly to: number;
}

/** The beginning of 1970 to the end of 9999: what a date of four digits can say. */
const LATEST = Date.UTC(10_000, 0) - 1;

/** Reads a window; its order must be right. Both are required by the contract, and were validated. */
export function windowOf(request: { from?: Timestamp | undefined; to?: Timestamp | undefined }): Window {
  const [from, to] = [request.from, request.to].map((time) => (time ? timestampMs(time) : Number.NaN));
  if (from === undefined || to === undefined || !(from >= 0 && to >= from && to <= LATEST)) {
    throw failure('INVALID_FIELD', '`from` and `to` must be times since 1970, `to` not before `from`.');
  }
  return { from, to };
}

/** The window cut down to whole steps, of which `most` are allowed; `to` is the start of the last step. */
export function inSteps({ from, to }: Window, step: number, most: number, called: string): Window {
  const cut = { from: from - (from % step), to: to - (to % step) };
  if ((cut.to - cut.from) / step >= most) throw failure('INVALID_FIELD', `The window is limited to ${called}.`);
  return cut;
}
