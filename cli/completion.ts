import { join } from 'node:path';
import { Argument, type Command } from 'commander';

/** The folder of Signpost. */
const HOME = join(import.meta.dirname, '..');

const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** `completion`: prints a script for shell completion of commands, options and values, generated from the commands. */
export function completionCommand(program: Command): void {
  program
    .command('completion')
    .description('print a shell completion script')
    .addArgument(new Argument('<shell>', 'which shell').choices(SHELLS))
    .addHelpText(
      'after',
      `
It completes a command called signpost, so define that first. In ~/.bashrc, or with zsh instead of bash in ~/.zshrc:
  signpost() { DATA_DIR="\${DATA_DIR:-${HOME}/.signpost}" "${HOME}/node_modules/.bin/node" "${HOME}/cli/main.ts" "$@"; }
  source <(signpost completion bash)

In ~/.config/fish/config.fish:
  function signpost; set -q DATA_DIR; or set -lx DATA_DIR "${HOME}/.signpost"; "${HOME}/node_modules/.bin/node" "${HOME}/cli/main.ts" $argv; end
  signpost completion fish | source`,
    )
    .action((shell: (typeof SHELLS)[number]) => {
      console.log(shell === 'fish' ? fish(program) : bash(program, shell === 'zsh'));
    });
}

/** All leaf commands: their path of words, and their options. */
function leaves(program: Command): { words: string[]; command: Command }[] {
  return program.commands.flatMap((group) =>
    group.commands.length === 0
      ? [{ words: [group.name()], command: group }]
      : group.commands.map((command) => ({ words: [group.name(), command.name()], command })),
  );
}

const longOptions = (command: Command) => [...command.options.flatMap(({ long }) => long ?? []), '--help'];

/** Also used by zsh, through its emulation of bash's completion. */
function bash(program: Command, zsh: boolean): string {
  const cases = leaves(program).flatMap(({ words, command }) => [
    ...command.options.flatMap(({ long, argChoices }) =>
      argChoices && long ? [`    "${words.join(' ')} ${long}") words="${argChoices.join(' ')}" ;;`] : [],
    ),
    `    "${words.join(' ')} "*) words="${longOptions(command).join(' ')}" ;;`,
  ]);
  const groups = program.commands.filter(({ commands }) => commands.length > 0);
  return `${zsh ? 'autoload -U +X bashcompinit && bashcompinit\n' : ''}_signpost() {
  local words="" current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="${[...program.commands.map((command) => command.name()), ...longOptions(program)].join(' ')}"
  elif [ "$COMP_CWORD" -eq 2 ]; then
    case "\${COMP_WORDS[1]}" in
${groups.map((group) => `      ${group.name()}) words="${group.commands.map((command) => command.name()).join(' ')} --help" ;;`).join('\n')}
      completion) words="${SHELLS.join(' ')}" ;;
    esac
  else
    case "\${COMP_WORDS[1]} \${COMP_WORDS[2]} $before" in
${cases.join('\n')}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _signpost signpost`;
}

function fish(program: Command): string {
  const quoted = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
  const groups = program.commands.map(
    (command) =>
      `complete -c signpost -n __fish_use_subcommand -f -a ${command.name()} -d ${quoted(command.description())}`,
  );
  const commands = program.commands.flatMap((group) => {
    const names = group.commands.map((command) => command.name()).join(' ');
    const inside = `__fish_seen_subcommand_from ${group.name()}; and not __fish_seen_subcommand_from ${names}`;
    return group.commands.map(
      (command) =>
        `complete -c signpost -n ${quoted(inside)} -f -a ${command.name()} -d ${quoted(command.description())}`,
    );
  });
  const options = leaves(program).flatMap(({ words, command }) => {
    const inside = words.map((word) => `__fish_seen_subcommand_from ${word}`).join('; and ');
    return command.options.map(({ long, description, argChoices, required }) => {
      const values = argChoices ? ` -x -a ${quoted(argChoices.join(' '))}` : required ? ' -r' : '';
      return `complete -c signpost -n ${quoted(inside)} -l ${long?.slice(2)} -d ${quoted(description)}${values}`;
    });
  });
  return [...groups, ...commands, ...options].join('\n');
}
