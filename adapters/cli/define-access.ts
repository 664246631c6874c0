import { type Command, Option } from 'commander';

import { common, running } from './command-line.ts';

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
