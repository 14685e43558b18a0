/** How long failures count as the same incident after its first one was logged, in ms. */
const INCIDENT_MS = 60_000;

/**
 * Tells whether a failure is the first one of an incident, which somebody must act on, or one of many that follow and
 * add nothing. `key`: what fails; there must be a limited number of different ones.
 */
export function firstFailures(incidentMs = INCIDENT_MS): (key: string) => boolean {
  const ends = new Map<string, number>();
  return (key) => {
    const now = performance.now();
    if (now < (ends.get(key) ?? Number.NEGATIVE_INFINITY)) return false;
    ends.set(key, now + incidentMs);
    return true;
  };
}
