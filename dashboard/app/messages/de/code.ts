export const code = {};
