export const codes = {};
