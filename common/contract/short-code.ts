/** The format of short codes. Source: docs/contract.md, "Identifiers". */
export const SHORT_CODE = /^[2-9A-HJ-NP-Za-km-z]{7}$/;
