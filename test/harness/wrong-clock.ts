/**
 * Options of Node (`NODE_OPTIONS`) with which the clock of a process is ahead by some ms, or behind if they are
 * negative.
 */
export function wrongClock(ms: number): string {
  const program = `
    const { Date } = globalThis;
    globalThis.Date = class extends Date {
      constructor(...given) {
        super(...(given.length > 0 ? given : [Date.now() + ${ms}]));
      }
      static now() {
        return Date.now() + ${ms};
      }
    };`;
  return `--import=data:text/javascript,${encodeURIComponent(program)}`;
}
