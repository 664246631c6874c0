import type { Command } from 'commander';

import { hint } from '../../core/shared/words.ts';

import type { AmmFlags, ReplaceFlags, RetireFlags, TasksFlags } from './commands/operations.ts';
import {
  common,
  type CommonOptions,
  count,
  jsonObject,
  positive,
  run,
  time,
} from './command-line.ts';
import type { TopFlags } from './commands/top.ts';
import type { ClientFlags } from './with-client.ts';

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
    .requiredOption('-s, --scheduler <address>', 'address of the scheduler')
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
    .action(async (options: With<ClientFlags>) => {
      const { workersCommand } = await import('./commands/operations.ts');
      await run(options, () => workersCommand(options));
    });
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
    .action(async (keys: readonly string[], options: With<TasksFlags>) => {
      const { tasksCommand } = await import('./commands/operations.ts');
      await run(options, () => tasksCommand(keys, options));
    });
}

function defineTop(program: Command): void {
  asking(program.command('top'))
    .description('Show workers, prefixes, throughput and what waits, again and again. q ends it.')
    .option('--interval <time>', 'pause between two looks, as 2s (default: 1s)', time)
    .option('--once', 'one look, without clearing the screen (default where there is no terminal)')
    .addHelpText('after', examples('top -s tls://127.0.0.1:8786'))
    .action(async (options: With<TopFlags>) => {
      const { topCommand } = await import('./commands/top.ts');
      await run(options, () => topCommand(options));
    });
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
    .action(async (workers: readonly string[], { close, ...options }: With<RetireFlags>) => {
      const { retireCommand } = await import('./commands/operations.ts');
      const flags = close === false ? { ...options, close } : options;
      await run(options, async () => retireCommand(workers, flags));
    });
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
    .action(async (options: With<AmmFlags>) => {
      const { ammCommand } = await import('./commands/operations.ts');
      await run(options, () => ammCommand('set', options));
    });
  asking(amm.command('run'))
    .description('Run one round now. Exit code 1 when a policy failed.')
    .action(async (options: With<AmmFlags>) => {
      const { runAmm } = await import('./commands/operations.ts');
      await run(options, () => runAmm(options));
    });
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
    .action(async (policy: string, options: With<AmmFlags>) => {
      const { addAmmPolicy } = await import('./commands/operations.ts');
      await run(options, () => addAmmPolicy(policy, options));
    });
  asking(amm.command('remove'))
    .description('Remove a policy.')
    .argument('<policy>', 'its id, or its name for all of that name')
    .action(async (policy: string, options: With<AmmFlags>) => {
      const { removeAmmPolicy } = await import('./commands/operations.ts');
      await run(options, () => removeAmmPolicy(policy, options));
    });
}

function definePolicy(program: Command): void {
  const policy = program
    .command('policy')
    .description('List the policies in charge, replace one, or restore the configured one.');
  asking(policy.command('list'))
    .description('List the policies in charge.')
    .action(async (options: With<ClientFlags>) => {
      const { listPolicies } = await import('./commands/operations.ts');
      await run(options, () => listPolicies(options));
    });
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
    .action(async (slot: string, use: string, options: With<ReplaceFlags>) => {
      const { replacePolicy } = await import('./commands/operations.ts');
      await run(options, () => replacePolicy(slot, use, options));
    });
  asking(policy.command('restore'))
    .description('Put the configured policy of a slot back in charge.')
    .argument('<slot>', 'such as queuing')
    .addHelpText('after', examples('policy restore queuing -s tls://127.0.0.1:8786'))
    .action(async (slot: string, options: With<ClientFlags>) => {
      const { restorePolicy } = await import('./commands/operations.ts');
      await run(options, () => restorePolicy(slot, options));
    });
}
