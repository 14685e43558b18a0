import type { MessageInitShape } from '@bufbuild/protobuf';
import type {
  CreateLandingPageCodeRequestSchema,
  CreateStaticCodeRequestSchema,
} from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import type { PolicySchema } from '../../proto/gen/signpost/targets/v1/policy_pb.ts';

/** One version of a code's target, after the first. */
export interface TargetChange {
  /** How many days before the end of the scans it became current. */
  readonly daysAgo: number;
  readonly note: string;
  readonly targetUrl?: string;
  readonly policy?: MessageInitShape<typeof PolicySchema>;
}

/** How often a code is scanned. */
export interface ScanPattern {
  /** The average number of scans on a day in the middle of the period. */
  readonly perDay: number;
  /** When in the day: at meals, in shops' hours or at work. */
  readonly hours: 'meals' | 'shops' | 'work';
  /** How many days before the end the code was first and last scanned; by default it is scanned on all days. */
  readonly firstDaysAgo?: number;
  readonly lastDaysAgo?: number;
}

/** A code of the sample, known by its name. */
export interface SampleCode {
  readonly name: string;
  readonly folder?: string;
  readonly tags: readonly string[];
  readonly paused?: boolean;
  readonly content:
    | { readonly targetUrl: string; readonly campaignType?: string; readonly changes?: readonly TargetChange[] }
    | { readonly page: Omit<MessageInitShape<typeof CreateLandingPageCodeRequestSchema>, 'name' | '$typeName'> }
    | { readonly fixed: Omit<MessageInitShape<typeof CreateStaticCodeRequestSchema>, 'name' | '$typeName'> };
  /** None for a static code, whose scans reach nobody. */
  readonly scans?: ScanPattern;
}
