export const batches = {};
