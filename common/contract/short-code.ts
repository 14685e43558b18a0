/** What every short code looks like. Source: decision "Identifiers". */
export const SHORT_CODE = /^[2-9A-HJ-NP-Za-km-z]{7}$/;
