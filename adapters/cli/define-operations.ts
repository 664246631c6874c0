import { type Command, Option } from 'commander';

import { hint } from '../../core/shared/words.ts';

import { TOP_SORTS } from './terminal.ts';

import type { AmmFlags } from './commands/operations.ts';
import {
  common,
  type CommonOptions,
  count,
  jsonObject,
  pauseTime,
  positive,
  run,
  running,
  schedulerOption,
  time,
} from './command-line.ts';

type With<Flags> = CommonOptions & Flags;

/** Adds the commands that look at a running cluster and operate it. */
export function defineOperations(program: Command): void {
  defineWorkers(program);
  defineTasks(program);
  defineTop(program);
  defineRetire(program);
  defineAmm(program);
  definePolicy(program);
}

function asking(command: Command): Command {
  return common(command)
    .addOption(schedulerOption())
    .option('-c, --config <file>', 'configuration file; its transport reaches the scheduler')
    .option('--json', 'as JSON');
}

function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ yardmaster ${line}`).join('\n')}`;
}

function defineWorkers(program: Command): void {
  asking(program.command('workers'))
    .description('List the workers of a cluster.')
    .addHelpText('after', examples('workers -s tls://127.0.0.1:8786'))
    .action(running(async () => (await import('./commands/operations.ts')).workersCommand));
}

function defineTasks(program: Command): void {
  asking(program.command('tasks'))
    .description('Count the tasks of a cluster by prefix and state, or list some of them.')
    .argument('[keys...]', 'these tasks')
    .option('--state <state>', 'list tasks in this state, such as processing')
    .option('--prefix <prefix>', 'list tasks of this prefix')
    .option('--limit <n>', 'list at most this many (default: 100)', positive)
    .addHelpText(
      'after',
      `${examples(
        'tasks -s tls://127.0.0.1:8786',
        'tasks -s tls://127.0.0.1:8786 --state erred --limit 20',
        'tasks -s tls://127.0.0.1:8786 sum-12 --json',
      )}\n\nExit code 1 when the scheduler does not know one of the keys.`,
    )
    .action(running(async () => (await import('./commands/operations.ts')).tasksCommand));
}

function defineTop(program: Command): void {
  asking(program.command('top'))
    .description('Show workers, prefixes, throughput and what waits, again and again. q ends it.')
    .option('--interval <time>', 'pause between two looks, as 2s (default: 1s)', pauseTime)
    .addOption(
      new Option(
        '--sort <column>',
        'of workers (default: tasks); t, c, m and n while it runs',
      ).choices(TOP_SORTS),
    )
    .option('--once', 'one look, without clearing the screen (default where there is no terminal)')
    .addHelpText('after', examples('top -s tls://127.0.0.1:8786'))
    .action(running(async () => (await import('./commands/top.ts')).topCommand));
}

function defineRetire(program: Command): void {
  asking(program.command('retire'))
    .description('Take workers out of service: what they hold moves to others, then they close.')
    .argument('[workers...]', 'addresses, names or hosts')
    .option('-n, --count <n>', 'as many workers as <n>, the most dispensable ones', positive)
    .option('--target <n>', 'as many as are needed to leave <n> workers', count)
    .option('--no-close', 'they stay connected, without tasks and data')
    .addHelpText(
      'after',
      `${examples(
        'retire -s tls://127.0.0.1:8786 alice bob',
        'retire -s tls://127.0.0.1:8786 --count 2',
      )}\n\nExit code 1 when one of them was kept; the reason is printed.`,
    )
    .action(running(async () => (await import('./commands/operations.ts')).retireCommand));
}

function defineAmm(program: Command): void {
  const amm = program
    .command('amm')
    .description('Look at the Active Memory Manager, set it, and add and remove its policies.');
  for (const [action, text] of [
    ['status', 'Show whether it runs, and its policies.'],
    ['start', 'Run rounds at its interval.'],
    ['stop', 'Run no more rounds at its interval.'],
  ] as const) {
    asking(amm.command(action, { isDefault: action === 'status' }))
      .description(text)
      .addHelpText('after', examples(`amm ${action} -s tls://127.0.0.1:8786`))
      .allowExcessArguments()
      .action(async (options: With<AmmFlags>, command: Command) => {
        refuseUnknown(amm, command.args);
        const { ammCommand } = await import('./commands/operations.ts');
        await run(options, () => ammCommand(action, options));
      });
  }
  asking(amm.command('set'))
    .description('Change its interval, or the measure of memory.')
    .option('--interval <time>', 'pause between two rounds, as 5s', time)
    .option('--measure <name>', 'by which workers are compared, such as optimistic')
    .action(running(async () => (await import('./commands/operations.ts')).setAmm));
  asking(amm.command('run'))
    .description('Run one round now. Exit code 1 when a policy failed.')
    .action(running(async () => (await import('./commands/operations.ts')).runAmm));
  defineAmmPolicies(amm);
}

/** "status" is run without its name, and would be given a misspelt name as an argument. */
function refuseUnknown(parent: Command, [word]: readonly string[]): void {
  if (word === undefined) return;
  const names = parent.commands.map((each) => each.name());
  parent.error(
    `error: unknown command '${parent.name()} ${word}'${hint(word, names)}; there are ${names.join(', ')}`,
  );
}

function defineAmmPolicies(amm: Command): void {
  asking(amm.command('add'))
    .description('Add a policy, from the next round on.')
    .argument('<policy>', 'a built-in one, or one that the configuration names')
    .option('--options <json>', 'options of the policy', jsonObject)
    .addHelpText('after', examples('amm add balance-memory -s tls://127.0.0.1:8786'))
    .action(running(async () => (await import('./commands/operations.ts')).addAmmPolicy));
  asking(amm.command('remove'))
    .description('Remove a policy.')
    .argument('<policy>', 'its id, or its name for all of that name')
    .action(running(async () => (await import('./commands/operations.ts')).removeAmmPolicy));
}

function definePolicy(program: Command): void {
  const policy = program
    .command('policy')
    .description('List the policies in charge, replace one, or restore the configured one.');
  asking(policy.command('list'))
    .description('List the policies in charge.')
    .action(running(async () => (await import('./commands/operations.ts')).listPolicies));
  asking(policy.command('replace'))
    .description('Put another policy in charge of a slot. No task is lost.')
    .argument('<slot>', 'such as queuing')
    .argument('<policy>', 'a built-in one, or one that scheduler.clientPolicies offers')
    .option('--options <json>', 'options of the policy', jsonObject)
    .addHelpText(
      'after',
      examples(
        'policy replace queuing family -s tls://127.0.0.1:8786',
        `policy replace queuing root-ish -s tls://127.0.0.1:8786 --options '{"workerSaturation": 2}'`,
      ),
    )
    .action(running(async () => (await import('./commands/operations.ts')).replacePolicy));
  asking(policy.command('restore'))
    .description('Put the configured policy of a slot back in charge.')
    .argument('<slot>', 'such as queuing')
    .addHelpText('after', examples('policy restore queuing -s tls://127.0.0.1:8786'))
    .action(running(async () => (await import('./commands/operations.ts')).restorePolicy));
}
