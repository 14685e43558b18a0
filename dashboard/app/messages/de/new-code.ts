export const newCode = {};
