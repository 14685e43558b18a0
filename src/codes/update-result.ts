import type { UpdatedCode } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';

/** What becomes of a code. */
export type UpdateResult = Pick<UpdatedCode, 'outcome'> & Partial<Pick<UpdatedCode, 'reason' | 'message'>>;
