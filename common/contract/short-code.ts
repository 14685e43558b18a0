/** What every short code looks like. Source: docs/contract.md, "Identifiers". */
export const SHORT_CODE = /^[2-9A-HJ-NP-Za-km-z]{7}$/;
