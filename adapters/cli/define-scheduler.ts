import { type Command, Option } from 'commander';
import { collect, common, idleTime, port, running, time } from './command-line.ts';
import { addSettings, SCHEDULER_SETTINGS } from './setting-flags.ts';

const HELP = `
Examples:
  $ yardmaster scheduler
  tls://127.0.0.1:8786
  $ yardmaster scheduler --host 0.0.0.0 --port 9000
  tls://10.0.0.5:9000
  $ yardmaster scheduler --dask
  tcp://127.0.0.1:8786
  tcp://127.0.0.1:8785

With --dask the first line is the address for Dask, and the port of the other one keeps out of its way.

Dask's address can be encrypted (--dask with --tls-ca-file, --tls-cert, --tls-key, or Dask's own configuration). Then
it is the only one.

The scheduler listens at tls://... and lets only those in who
have keys of its access file, which it writes to ~/.yardmaster/access unless --access names one. Workers, clients
and commands of the same user find it; elsewhere they are given one: "yardmaster access show --role worker".
--insecure listens without encryption and keys: everybody who reaches it can run code. Beside a plain port for
Dask the own address on this machine is plain, too.

With --dask the flags of \`dask scheduler\` are accepted, and Dask's own configuration (YAML files and
DASK_DISTRIBUTED__SCHEDULER__... variables) has effect; \`yardmaster check-config --dask\` shows which.`;

export function defineScheduler(program: Command): void {
  const command = withJournalFlags(
    withDaskFlags(withDashboardFlags(common(program.command('scheduler')))),
  )
    .description('Start a scheduler. Prints its address as one line once it listens.')
    .option('-c, --config <file>', 'configuration file (YAML, JSON or a JavaScript module)')
    .option(
      '--host <host>',
      'host to listen on, or a URI; 0.0.0.0 for all (default: of the configuration)',
    )
    .option('--insecure', 'listen without encryption or credentials, also beyond this machine')
    .option('--interface <name>', 'network interface to listen on, such as eth0')
    .option(
      '-p, --port <port>',
      'port to listen on, with --dask that for Dask; 0 for any (default: of the configuration)',
      port,
    )
    .option('--dask', 'also take the place of `dask scheduler`, for clients and workers of Dask')
    .option(
      '--dask-port <port>',
      'port for Dask; --port is then that of the own protocol (default: --port, else 8786)',
      port,
    )
    .option('--python <command>', 'Python with the packages of your Dask clients (default: found)')
    .option(
      '--no-scheduler-python',
      'refuse run_on_scheduler, scheduler plugins and performance_report of Dask clients',
    )
    .option('--idle-timeout <time>', 'close when there was nothing to do for this long', idleTime)
    .option(
      '--preload <module>',
      'module to load first: JavaScript, with --dask also Python (repeatable)',
      collect,
    )
    .option('--record <file>', 'record all that happens to the scheduler, for `yardmaster replay`')
    .option('--record-keep <limit>', 'keep the latest part of it: 2GB, 24h, or both: 2GB,24h')
    .option('--recordings <folder>', 'where clients with the key of an admin may have it recorded')
    .option('--pid-file <file>', 'file for the process id; it is deleted at the end');
  addSettings(command, SCHEDULER_SETTINGS)
    .addHelpText('after', HELP)
    .action(running(async () => (await import('./commands/scheduler.ts')).schedulerCommand));
}

function withJournalFlags(command: Command): Command {
  return command
    .option(
      '--journal <folder>',
      'keep a journal, from which a scheduler that is started again continues',
    )
    .option(
      '--durability <how>',
      'when what clients submit counts as written: commit, interval=50ms or none (default: commit)',
    )
    .addOption(
      new Option(
        '--on-journal-error <action>',
        'when the disk is full or fails (default: stop)',
      ).choices(['stop', 'continue']),
    )
    .option(
      '--journal-wait <time>',
      'how long to wait for the workers of the journal (default: 30s)',
      time,
    );
}

function withDashboardFlags(command: Command): Command {
  return command
    .option(
      '--dashboard [port]',
      'port of the dashboard, which is served on this machine only (default: on, at 8787)',
      port,
    )
    .option('--no-dashboard', 'serve no dashboard')
    .option(
      '--dashboard-address <address>',
      'host:port of the dashboard; beyond this machine it shows figures only',
    );
}

/** The flags of `dask scheduler` that need `--dask`. */
function withDaskFlags(command: Command): Command {
  return command
    .option(
      '--scheduler-file <file>',
      "file by which Dask's clients and workers find the scheduler",
    )
    .option('--contact-address <address>', 'address to announce to them, when it differs')
    .option(
      '--protocol <name>',
      'protocol for Dask: tcp or tls (default: tcp, tls with certificates)',
    )
    .addOption(new Option('--dashboard-prefix <prefix>').hideHelp())
    .addOption(new Option('--use-xheaders <flag>').hideHelp())
    .addOption(new Option('--show').hideHelp())
    .addOption(new Option('--no-show').hideHelp())
    .addOption(new Option('--jupyter').hideHelp())
    .addOption(new Option('--no-jupyter').hideHelp());
}

const ROLES = ['worker', 'client', 'admin', 'viewer'] as const;

/** Adds the commands that make and show access files. */
export function defineAccess(program: Command): void {
  const access = program
    .command('access')
    .description('Make access files, replace their keys, and cut them down to a role.');
  common(access.command('new'))
    .description('Make an access file with new keys, for a scheduler and all that connects to it.')
    .argument('<file>', 'where to write it; only its owner can read it')
    .action(running(async () => (await import('./commands/access.ts')).newAccessFile));
  common(access.command('rotate'))
    .description('Replace all keys. Listeners accept the new ones at once; open connections stay.')
    .argument('[file]', 'default: the newest one that a scheduler of this user has left')
    .action(running(async () => (await import('./commands/access.ts')).rotateAccess));
  common(access.command('show'))
    .description('Print an access file that has the keys of one role only.')
    .argument('[file]', 'default: the newest one that a scheduler of this user has left')
    .addOption(new Option('--role <role>', 'whose keys').choices(ROLES).makeOptionMandatory())
    .option('-o, --output <file>', 'write it there, for its owner alone, and print the path')
    .addHelpText(
      'after',
      '\nExample:\n  $ yardmaster access show --role worker --output worker-access.json',
    )
    .action(running(async () => (await import('./commands/access.ts')).showAccess));
}
