import type { AttackKind } from './attacker.ts';

/** The attacks on the gateway's port; the others are on those of the core. */
export const GATEWAY_ATTACKS: readonly AttackKind[] = [
  'reset after CONNECT',
  'garbage',
  'made-up keys',
  'large bodies',
  'unknown codes',
  'slow headers',
];
