import { type Command, Option } from 'commander';
import { common, count, port, running } from './command-line.ts';

export function defineRecordings(program: Command): void {
  defineReplay(program);
  defineReport(program);
  defineDashboard(program);
  const log = program.command('log').description('Look into a recording.');
  defineOfFile(log, 'inspect', 'Show what a recording holds.', 'inspectCommand');
  defineOfFile(
    log,
    'verify',
    'Check every frame of a recording. Exit code 1 when it is torn or damaged.',
    'verifyCommand',
  );
  defineExport(log);
  defineOfFile(
    log,
    'repair',
    'Cut a recording or a segment of a journal before its first damaged frame.',
    'repairCommand',
  );
}

/** The option of every command that reads a recording. */
const ALLOW_POLICIES = [
  '--allow-policies',
  'import the files of policies that the recording names; only of recordings that you trust',
] as const;

function defineReplay(program: Command): void {
  common(program.command('replay'))
    .description('Run a recording through the scheduler again, and compare every decision.')
    .argument('<file>', 'made by `yardmaster scheduler --record`')
    .option('--until <frame>', 'stop after this frame', count)
    .addOption(
      new Option(
        '--step',
        'show each stimulus and what it caused; with --until from that frame on',
      ).conflicts(['why', 'json']),
    )
    .option('--why <key>', 'say why the task is where it is at that moment')
    .option('--validate', 'check every invariant after each stimulus (slow)')
    .option(...ALLOW_POLICIES)
    .option('--json', 'as JSON')
    .addHelpText(
      'after',
      `
Examples:
  $ yardmaster scheduler --record run.ylog             record a scheduler
  $ yardmaster replay run.ylog                         is every decision the same here?
  $ yardmaster replay run.ylog --until 4200 --why sum-3
  $ yardmaster replay run.ylog --until 4200 --step     from there on stimulus by stimulus

Exit code 1 when the replay differs, or the recording is damaged.`,
    )
    .action(running(async () => (await import('./commands/replay.ts')).replayCommand));
}

function defineReport(program: Command): void {
  common(program.command('report'))
    .description(
      'Say what a recorded piece of work cost, and what could be better, in one HTML file.',
    )
    .argument('<file>', 'made by `yardmaster scheduler --record`')
    .option(
      '-o, --output <file>',
      'page, or schedule (.json), to write (default: run.html of run.ylog)',
    )
    .option('--json', 'figures and findings as JSON, to standard output')
    .option(...ALLOW_POLICIES)
    .addHelpText(
      'after',
      `
Examples:
  $ yardmaster report run.ylog                         writes run.html
  $ yardmaster report run.ylog -o report.html
  $ yardmaster report run.ylog --json`,
    )
    .action(running(async () => (await import('./commands/report.ts')).reportCommand));
}

function defineDashboard(program: Command): void {
  common(program.command('dashboard'))
    .description('Open the pages of the dashboard over a recording or a journal.')
    .argument('<path>', 'a recording, or the folder of a journal')
    .option('--port <port>', 'where to serve it (default: 8787, or the next free one)', port)
    .option(...ALLOW_POLICIES)
    .addHelpText(
      'after',
      `
Examples:
  $ yardmaster scheduler --record run.ylog             record a scheduler
  $ yardmaster dashboard run.ylog                      what was there at any moment, and why
  $ yardmaster dashboard /var/lib/yardmaster           what a journal knows

It is served on this machine only, and changes nothing. A slider goes to any moment.`,
    )
    .action(running(async () => (await import('./commands/dashboard.ts')).dashboardCommand));
}

/** A command that looks at one file. @param run - the function of `commands/log.ts` */
function defineOfFile(
  log: Command,
  name: string,
  text: string,
  run: 'inspectCommand' | 'verifyCommand' | 'repairCommand',
): void {
  common(log.command(name))
    .description(text)
    .argument('<file>')
    .option('--json', 'as JSON')
    .action(running(async () => (await import('./commands/log.ts'))[run]));
}

function defineExport(log: Command): void {
  common(log.command('export'))
    .description('Write a recording in another form, to standard output or a file.')
    .argument('<file>')
    .addOption(
      new Option(
        '-f, --format <format>',
        'one JSON object a line, or what Perfetto and chrome://tracing open',
      )
        .choices(['ndjson', 'chrome-trace'])
        .default('ndjson'),
    )
    .option('-o, --output <file>', 'file to write (default: standard output)')
    .action(running(async () => (await import('./commands/log.ts')).exportCommand));
}
