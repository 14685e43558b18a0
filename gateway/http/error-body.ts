/** The body of every error. Source: docs/contract.md, "Errors" and "Bodies and envelopes". */
export interface ErrorBody {
  /** One sentence that a person can act on. */
  error: string;
  /** Only with some 403s. */
  code?: string;
  /** With `qr_limit_reached`: how many dynamic codes that are not deleted are allowed, and how many there are. */
  limit?: number;
  used?: number;
}
