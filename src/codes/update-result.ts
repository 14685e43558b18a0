import type { UpdatedCode } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';

/** The outcome of an update of one code. */
export type UpdateResult = Pick<UpdatedCode, 'outcome'> & Partial<Pick<UpdatedCode, 'reason' | 'message'>>;
