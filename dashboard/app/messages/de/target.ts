export const target = {};
