import fc from 'fast-check';

/** Has all property tests draw from `TEST_SEED`, which the run prints, so that a run can be repeated. */
fc.configureGlobal({ seed: Number(process.env.TEST_SEED) });
