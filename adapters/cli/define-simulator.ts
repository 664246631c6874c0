import { availableParallelism } from 'node:os';
import { type Command, Option } from 'commander';
import { clusterFlags } from './cluster-flags.ts';
import { common, count, positive, running } from './command-line.ts';

const WORKLOADS =
  'such as numpy-50K-50, tree:8@100ms,10MB, a recording (.ylog), a graph of WfCommons or Estee (.json), or in DOT (.dot), or a module (.js)';

/** Adds the commands that run workloads on simulated clusters. */
export function defineSimulator(program: Command): void {
  defineSimulate(program);
  const lab = program.command('lab').description('Compare policies on simulated clusters.');
  defineCompare(lab);
  defineCorpus(lab);
  defineWorstCase(lab);
  defineCalibrate(lab);
}

function defineSimulate(program: Command): void {
  clusterFlags(program.command('simulate'))
    .description('Run a workload on a simulated cluster, with the scheduler of production.')
    .argument('<workload>', WORKLOADS)
    .option('-c, --config <file>', 'configuration of the scheduler')
    .option(
      '-p, --policies <names>',
      'built-in policies, such as balanced+ordering/dask, or the module of one',
    )
    .option('--seed <n>', 'all that is drawn depends on it', count, 1)
    .option('-o, --output <file>', 'write the schedule: a page with pictures, or .json')
    .option('--json', 'as JSON')
    .addHelpText(
      'after',
      `
Examples:
  $ yardmaster simulate numpy-50K-50 --workers 100 --threads 4
  $ yardmaster simulate shuffle:30@200ms,20MB --workers 10 --memory 1GB --policies balanced
  $ yardmaster simulate run.ylog --workers 20      what would it have been on twenty workers?`,
    )
    .action(running(async () => (await import('./commands/simulate.ts')).simulateCommand));
}

function defineCompare(lab: Command): void {
  clusterFlags(lab.command('compare'))
    .description('Run workloads under several policies, and print what differs.')
    .argument('<workload...>', WORKLOADS)
    .requiredOption(
      '-p, --policies <a,b,c>',
      'default, built-in policies, several joined by +, modules of policies, or configurations; the first is what others are compared with',
    )
    .option('--seeds <n>', 'runs of each workload under each of them', positive, 5)
    .option('-j, --jobs <n>', 'simulations at once', positive, availableParallelism())
    .addOption(format())
    .addOption(new Option('--json', 'as --format json').implies({ format: 'json' }))
    .addHelpText(
      'after',
      `
Examples:
  $ yardmaster lab compare tree:8@100ms,10MB shuffle:20@100ms,5MB --policies default,balanced,locality-first
  $ yardmaster lab compare run.ylog --policies default,mine.yaml --workers 20 --format html > compared.html`,
    )
    .action(running(async () => (await import('./commands/lab.ts')).compareCommand));
}

function defineCorpus(lab: Command): void {
  common(lab.command('corpus'))
    .description('Measure policies on many graphs and clusters, with intervals and bounds.')
    .argument('[workload...]', `folders of graphs, or workloads, ${WORKLOADS}`)
    .option('--corpus <folder>', 'a folder of graphs')
    .option(
      '-p, --policies <a,b,c>',
      'as for compare (default: each built-in policy in the place of the default of its slot)',
    )
    .option('-b, --baseline <policies>', 'those that the others are compared with', 'dask')
    .option('--seeds <n>', 'runs of each graph in each setting', positive, 3)
    .option('-j, --jobs <n>', 'simulations at once (default: as many as there are cores)', positive)
    .option('--quick', 'graphs of up to 200 tasks, on 8x2 with 1Gbit')
    .addOption(
      new Option('--full', 'all clusters, links, memory and durations').conflicts([
        ...['quick', 'clusters', 'links', 'memory', 'durations'],
      ]),
    )
    .option('--clusters <a,b>', '8x2, 32x4, 4x16, unequal')
    .option('--links <a,b>', '100Mbit, 1Gbit, 10Gbit')
    .option('--memory <a,b>', 'ample, tight (0.6 of the peak of the baseline)')
    .option('--durations <a,b>', 'unknown, known, wrong (by a third)')
    .option('--max-tasks <n>', 'leave larger graphs out', positive)
    .option('--no-offline', 'without the schedules that know everything')
    .option(
      '-o, --output <folder>',
      'continue from its results, and write corpus.json and corpus.html',
    )
    .addOption(format())
    .addOption(new Option('--json', 'as --format json').implies({ format: 'json' }))
    .addHelpText(
      'after',
      `
Examples:
  $ yardmaster lab corpus instances --quick --policies balanced,./pack.js
  $ yardmaster lab corpus instances --full --policies family+calm -o results`,
    )
    .action(running(async () => (await import('./commands/lab.ts')).corpusCommand));
}

function format(): Option {
  return new Option('-f, --format <format>', 'how')
    .choices(['table', 'json', 'html'])
    .default('table');
}

function defineWorstCase(lab: Command): void {
  clusterFlags(lab.command('worst-case'))
    .description(
      'Look for a graph and a network on which one choice of policies is worst beside another.',
    )
    .argument('<policies>', 'those that shall lose: default, built-in ones, or a configuration')
    .argument('<others>', 'those that they are compared with')
    .option('--steps <n>', 'graphs that are tried', positive, 400)
    .option('--tasks <n>', 'tasks of a graph at most', positive, 16)
    .option('--seed <n>', 'another seed looks elsewhere', count, 1)
    .option('-o, --output <file>', 'write the graph as a module (.js)')
    .option('--json', 'as JSON')
    .addHelpText(
      'after',
      `
Examples:
  $ yardmaster lab worst-case default balanced
  $ yardmaster lab worst-case mine.yaml default --workers 3 --steps 2000 -o worst.js`,
    )
    .action(running(async () => (await import('./commands/lab.ts')).worstCaseCommand));
}

function defineCalibrate(lab: Command): void {
  common(lab.command('calibrate'))
    .description('Fit the models of the simulator to a recording, and compare the makespans.')
    .argument('<recording>', 'a recording (.ylog)')
    .option('--json', 'as JSON')
    .action(running(async () => (await import('./commands/lab.ts')).calibrateCommand));
}
