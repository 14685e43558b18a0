import { MAX_ROWS } from '../../common/contract/limits.ts';
import type { PlanName } from '../../common/contract/names.ts';

/** Features and limits of a plan. Source: docs/contract.md, "Who may call". */
export interface Plan {
  readonly api: boolean;
  readonly bulk: boolean;
  readonly images: boolean;
  /** Requests per month; null means unlimited. */
  readonly monthlyQuota: number | null;
  /** Dynamic codes that are not deleted; null means unlimited. */
  readonly codeLimit: number | null;
  /** Rows per batch. */
  readonly batchLimit: number;
}

export const PLANS = {
  free: { api: false, bulk: false, images: false, monthlyQuota: 1_000, codeLimit: 10, batchLimit: 0 },
  business: { api: true, bulk: true, images: true, monthlyQuota: 50_000, codeLimit: 1_000, batchLimit: 1_000 },
  scale: { api: true, bulk: true, images: true, monthlyQuota: 250_000, codeLimit: 10_000, batchLimit: 10_000 },
  enterprise: { api: true, bulk: true, images: true, monthlyQuota: null, codeLimit: null, batchLimit: MAX_ROWS },
} as const satisfies Record<PlanName, Plan>;
