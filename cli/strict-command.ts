import { Command, type Option } from 'commander';

/**
 * Names the mistakes that commander reports as something else. It calls these methods, which its types do not declare.
 */
export class StrictCommand extends Command {
  override createCommand(name?: string): StrictCommand {
    return new StrictCommand(name);
  }

  /** A misspelled `--acount` is an unknown option, although `--account` is missing then. */
  missingMandatoryOptionValue({ flags }: Option): void {
    const unknown = this.args.find((argument) => /^-./.test(argument));
    if (unknown !== undefined) (this as unknown as { unknownOption(flag: string): void }).unknownOption(unknown);
    this.error(`error: required option '${flags}' not specified`);
  }

  /** `help code create`: of these, commander knows the first word alone, and says nothing about an unknown one. */
  _dispatchHelpCommand(): void {
    let shown: Command = this;
    for (const word of this.args.slice(1)) {
      const named = shown.commands.find((command) => command.name() === word);
      shown = named ?? shown.error(`error: unknown command '${word}'`);
    }
    shown.help();
  }
}
