import { Argument, Command } from 'commander';
import { VERSION } from '../../core/api/plugin.ts';
import {
  common,
  count,
  port as inspectPort,
  positive,
  running,
  schedulerAddress,
  schedulerOption,
} from './command-line.ts';
import { completionScript, type Shell, SHELLS } from './completion.ts';
import { defineAccess, defineScheduler } from './define-scheduler.ts';
import { defineOperations } from './define-operations.ts';
import { defineRecordings } from './define-recordings.ts';
import { defineSimulator } from './define-simulator.ts';
import { addSettings, WORKER_SETTINGS } from './setting-flags.ts';
import { say } from './terminal.ts';

/** The command line: all commands and their flags. What a command does is loaded when it is called. */
export const program = new Command('yardmaster')
  .description('A scheduler for graphs of tasks, and the workers that compute them.')
  .version(VERSION)
  .showHelpAfterError('(add --help for what can be said)')
  .addHelpText(
    'after',
    `
Examples:
  $ yardmaster demo                                    find near-duplicate texts on two worker processes
  $ yardmaster scheduler --port 8786                   start a scheduler on this machine
  $ yardmaster worker tls://127.0.0.1:8786             start a worker for it
  $ yardmaster check-config cluster.yaml               see what a configuration would start

Results go to stdout, logs and progress to stderr. Ctrl-C closes in good order; a second one does not wait.`,
  );

program.commandsGroup('Run a cluster:');
defineScheduler(program);
defineAccess(program);

addSettings(
  common(program.command('worker'))
    .description('Start a worker that computes for a scheduler.')
    .argument(
      '<address>',
      'address of the scheduler, such as tls://127.0.0.1:8786; tls:// may be left out',
      schedulerAddress,
    )
    .option('-c, --config <file>', 'configuration file; flags win over it')
    .option('-n, --name <name>', 'name for people and for restrictions (default: the address)')
    .option(
      '--host <host>',
      'host under which others reach this worker (default: the address by which it reaches the scheduler)',
    )
    .option('--insecure', 'listen beyond this machine without encryption or credentials')
    .option('--spill-folder <folder>', 'folder for spilled results (default: the temporary folder)')
    .option(
      '--code-root <folder>',
      'project in which modules are looked for that clients name relative to theirs (default: this project)',
    )
    .option(
      '--inspect [port]',
      'have a debugger attach to the worker, on this machine only (default port: 9229; 0: any)',
      inspectPort,
    ),
  WORKER_SETTINGS,
)
  .addHelpText(
    'after',
    `
Examples:
  $ yardmaster worker tls://127.0.0.1:8786 --threads 4
  $ yardmaster worker tls://127.0.0.1:8786 --name gpu-1 --resources 'GPU=1' --memory-limit 8GiB`,
  )
  .action(running(async () => (await import('./commands/worker.ts')).workerCommand));

program.command('worker-process <name>', { hidden: true }).action(async () => {
  const { workerProcessCommand } = await import('./commands/worker.ts');
  await workerProcessCommand();
});

common(program.command('check-config'))
  .description('Load a configuration and everything it names, and print what it would start.')
  .argument('[file]', 'configuration file; may be left out with --dask')
  .option('--dask', "with Dask's own configuration below it, as `scheduler --dask` takes it")
  .option('--python <command>', 'Python whose environment may hold configuration of Dask')
  .option('--json', 'as JSON')
  .addHelpText(
    'after',
    `
Examples:
  $ yardmaster check-config cluster.yaml
  $ yardmaster check-config --dask                     what Dask's configuration means here, and what is ignored

Modules that the file names are loaded, but nothing is set up, and nothing listens.
Exit code 1, with one line for each problem, when it is not usable.`,
  )
  .action(running(async () => (await import('./commands/check-config.ts')).checkConfigCommand));

program.commandsGroup('Look at a cluster and operate it:');
common(program.command('why'))
  .description('Explain why a task is where it is, or why all work takes as long as it does.')
  .argument('[key]', 'key of the task; without one threads are watched for five seconds')
  .addOption(schedulerOption())
  .option('-c, --config <file>', 'configuration file; its transport reaches the scheduler')
  .option('--record <n>', 'from now on keep the newest n decisions with their candidates', count)
  .option('--json', 'as JSON')
  .addHelpText(
    'after',
    `
Examples:
  $ yardmaster why --scheduler tls://127.0.0.1:8786
  $ yardmaster why sum-12 --scheduler tls://127.0.0.1:8786
  $ yardmaster why sum-12 --scheduler tls://127.0.0.1:8786 --record 10000

Candidates are shown for decisions that were recorded: with --record, or scheduler.decisionLogLength in
the configuration. Exit code 1 when the scheduler does not know the key.`,
  )
  .action(running(async () => (await import('./commands/why.ts')).whyCommand));

defineOperations(program);
program.commandsGroup('Look into a recording:');
defineRecordings(program);
program.commandsGroup('Simulate:');
defineSimulator(program);

program.commandsGroup('Try it:');
common(program.command('demo'))
  .description(
    'Find texts that nearly repeat each other with hundreds of tasks, and check the result.',
  )
  .option(
    '-c, --config <file>',
    'configuration of the scheduler and its policies; flags win over it',
  )
  .option('--path <folder>', 'folder with text, .gz too (default: manual pages, else node_modules)')
  .option('-w, --workers <n>', 'worker processes', positive, 2)
  .option('-t, --threads <n>', 'tasks at once per worker', positive, 1)
  .option(
    '--limit-files <n>',
    'files to compare, spread evenly over all (default: as many as have 105 MiB of text)',
    positive,
  )
  .option('--chaos [kills]', 'kill workers at random moments, so often (default: 10)', positive)
  .option(
    '--chaos-scheduler [kills]',
    'kill the scheduler, which keeps a journal, and workers besides (default: 20)',
    positive,
  )
  .option('--seed <n>', 'of the moments (default: by the clock)', count)
  .option('--no-kill', 'let all workers live, which are killed otherwise: one at half time')
  .option('--report <file>', 'page about how it went (default: in the folder for temporary files)')
  .option('--record <file>', 'write a recording, for `yardmaster replay`')
  .addHelpText(
    'after',
    `
Examples:
  $ yardmaster demo
  $ yardmaster demo --path node_modules --workers 4
  $ yardmaster demo --path ~/notes --limit-files 500
  $ yardmaster demo --chaos --seed 7                   kill a worker ten times meanwhile
  $ yardmaster demo --chaos-scheduler 20 --seed 7      kill the scheduler twenty times, and workers
  $ yardmaster demo --config cluster.yaml              see what other policies make of it

Exit code 1 when the result differs from that of a plain pass in one thread.`,
  )
  .action(running(async () => (await import('./commands/demo.ts')).demoCommand));

common(program.command('demo-dask'))
  .description(
    "Run Dask's own client and workers with this scheduler, and check what they compute.",
  )
  .option('--python <command>', 'a Python that has dask and distributed (default: found)')
  .addHelpText(
    'after',
    `
Examples:
  $ yardmaster demo-dask
  $ yardmaster demo-dask --python ~/venv/bin/python

Exit code 1 when a result differs from that of NumPy or pandas.`,
  )
  .action(running(async () => (await import('./commands/demo-dask.ts')).demoDaskCommand));

program
  .commandsGroup('This program:')
  .command('completion')
  .description('Print a script by which a shell completes commands, flags and values.')
  .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
  .addHelpText(
    'after',
    `
Examples:
  $ source <(yardmaster completion bash)               for zsh the same, in ~/.zshrc after compinit
  $ yardmaster completion fish > ~/.config/fish/completions/yardmaster.fish`,
  )
  .action((shell: Shell) => say(completionScript(program, shell)));
program.helpCommand('help [command]', 'Show what a command does, and its flags.');
