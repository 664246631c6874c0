/** Makes scripts by which shells complete commands, flags and values, out of the tree of commands. */
import type { Command, Option } from 'commander';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** Words that can follow a command. */
interface Place {
  /** Names of the commands before, each with a slash: `/lab/compare`. */
  readonly path: string;
  readonly commands: readonly Command[];
  readonly options: readonly Option[];
}

/** The script for a shell, to be evaluated when it starts. */
export function completionScript(program: Command, shell: Shell): string {
  const places = placesIn(program, '');
  const name = program.name();
  const at = placeFunction(name);
  if (shell === 'fish') return fishScript(name, at, places);
  return shell === 'bash' ? bashScript(name, at, places) : zshScript(name, at, places);
}

function placesIn(command: Command, path: string): Place[] {
  const help = command.createHelp();
  const commands = help.visibleCommands(command);
  const own = { path, commands, options: help.visibleOptions(command) };
  const below = commands.filter((each) => each.name() !== 'help');
  return [own, ...below.flatMap((each) => placesIn(each, `${path}/${each.name()}`))];
}

const placeFunction = (name: string): string => `_${name}_place`;

/** Names of all places but the first, as patterns of a `case`. */
function patterns(places: readonly Place[], separator: string): string {
  return places.flatMap(({ path }) => (path === '' ? [] : [path])).join(separator);
}

/** The first sentence of a description, without what shells would interpret. */
function words(text: string): string {
  return (text.split(/[.:;(]/)[0] ?? '').replace(/[^\w ,/-]/g, '').trim();
}

const names = ({ short, long }: Option): string[] =>
  [short, long].flatMap((each) => (each === undefined ? [] : [each]));

/** Flags that take a value from a list, or something else: `--log-level` of `/scheduler`. */
function values(places: readonly Place[]): { flags: string[]; choices: readonly string[] }[] {
  return places.flatMap(({ path, options }) =>
    options
      .filter((option) => option.required || option.optional)
      .map((option) => ({
        flags: names(option).map((flag) => `${path} ${flag}`),
        choices: option.argChoices ?? [],
      })),
  );
}

function wordsOf({ commands, options }: Place): string {
  return [...commands.map((each) => each.name()), ...options.flatMap(names)].join(' ');
}

/** The function by which bash and zsh find the place that the words before lead to. */
function posixPlace(at: string, places: readonly Place[]): string {
  return `${at}() {
  local word place=''
  for word in "$@"; do
    case "$place/$word" in ${patterns(places, '|')}) place="$place/$word" ;; esac
  done
  printf '%s' "$place"
}`;
}

/** The branches of a `case` of bash and zsh for flags that take a value. */
function posixValues(places: readonly Place[], of: (choices: readonly string[]) => string): string {
  return values(places)
    .map(
      ({ flags, choices }) =>
        `    ${flags.map((flag) => `'${flag}'`).join('|')}) ${of(choices)}; return ;;`,
    )
    .join('\n');
}

function bashScript(name: string, at: string, places: readonly Place[]): string {
  const choosing = posixValues(places, (choices) => {
    const found = choices.length === 0 ? '-f' : `-W '${choices.join(' ')}'`;
    return `COMPREPLY=($(compgen ${found} -- "$current"))`;
  });
  return `# ${name} completion for bash: source <(${name} completion bash)
${posixPlace(at, places)}
_${name}() {
  local current="\${COMP_WORDS[COMP_CWORD]}" place
  place="$(${at} "\${COMP_WORDS[@]:1:COMP_CWORD-1}")"
  case "$place \${COMP_WORDS[COMP_CWORD-1]}" in
${choosing}
  esac
  case "$place" in
${places.map((place) => `    '${place.path}') COMPREPLY=($(compgen -W '${wordsOf(place)}' -- "$current")) ;;`).join('\n')}
  esac
  [ "\${#COMPREPLY[@]}" -gt 0 ] || COMPREPLY=($(compgen -f -- "$current"))
}
complete -o filenames -F _${name} ${name}
`;
}

function zshScript(name: string, at: string, places: readonly Place[]): string {
  const entry = (word: string, text: string): string => `'${word}:${words(text)}'`;
  const choosing = posixValues(places, (choices) =>
    choices.length === 0 ? '_files' : `compadd ${choices.join(' ')}`,
  );
  const lists = places.map(({ path, commands, options }) => {
    const entries = [
      ...commands.map((each) => entry(each.name(), each.summary() || each.description())),
      ...options.flatMap((option) => names(option).map((flag) => entry(flag, option.description))),
    ];
    return `    '${path}') found=(${entries.join(' ')}) ;;`;
  });
  return `#compdef ${name}
# ${name} completion for zsh: source <(${name} completion zsh)
${posixPlace(at, places)}
_${name}() {
  local place="$(${at} "\${words[@]:1:$((CURRENT - 2))}")"
  local -a found
  case "$place \${words[CURRENT-1]}" in
${choosing}
  esac
  case "$place" in
${lists.join('\n')}
  esac
  _describe '${name}' found
  _files
}
compdef _${name} ${name}
`;
}

function fishScript(name: string, at: string, places: readonly Place[]): string {
  const lines = places.flatMap(({ path, commands, options }) => {
    const start = `complete -c ${name} -n 'test "$(${at})" = "${path}"'`;
    return [
      ...commands.map(
        (each) => `${start} -a ${each.name()} -d '${words(each.summary() || each.description())}'`,
      ),
      ...options.map((option) => {
        const flags = names(option).map((flag) =>
          flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`,
        );
        const { argChoices: choices, required } = option;
        const value =
          choices === undefined ? (required ? ' -r' : '') : ` -xa '${choices.join(' ')}'`;
        return `${start} ${flags.join(' ')}${value} -d '${words(option.description)}'`;
      }),
    ];
  });
  return `# ${name} completion for fish: ${name} completion fish | source
function ${at}
  set -l place ''
  for word in (commandline -opc)[2..-1]
    switch "$place/$word"
      case ${patterns(places, ' ')}
        set place "$place/$word"
    end
  end
  printf '%s' $place
end
${lines.join('\n')}
`;
}
