/** What the command line exits with if not 0; `--help` and docs/command-line.md describe them. */
export const EXIT_CODES = {
  /** The core rejected the call, or it is unavailable. */
  failed: 1,
  /** Invalid usage: nothing was called. */
  usage: 2,
  /**
   * The command was executed, but the request is not fulfilled, or only in part, or its result could not be printed.
   */
  unfulfilled: 3,
} as const;

/** Makes the process exit with `unfulfilled` when it ends. */
export function exitUnfulfilled(): void {
  process.exitCode = EXIT_CODES.unfulfilled;
}
