/**
 * `npm run lab:real -- [graphs]`: runs graphs on workers in network namespaces behind shaped links and in the simulator,
 * and prints by how much makespan, bytes moved and peaks of memory differ. With `--policies A,B` the graphs run under
 * both in turn: by how much the first is faster, and what the simulator expected. `--dask PYTHON`: Dask's client and
 * workers. Most tasks sleep, so that a small machine can play several workers; those of `busy:` graphs use a processor.
 */
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { textTable } from '../../adapters/cli/terminal.ts';
import {
  Draw,
  loadWorkload,
  loadWorkloads,
  type PolicyVariant,
  readVariant,
  type SimulatedWorkload,
  Simulation,
  type SimulationOptions,
} from '../../adapters/simulator/index.ts';
import { lowerBoundS, problemOf } from '../../adapters/simulator/lab/offline.ts';
import { interval, meanOf } from '../../adapters/simulator/lab/statistics.ts';
import { pause, RealCluster, type RealGraph, type RunFigures } from './real-cluster.ts';
import { enterNamespaces, makePlaces, PAYLOAD_SHARE, type Place, QUEUE_S } from './shaped-links.ts';

const { values: flags, positionals } = parseArgs({
  options: {
    workers: { type: 'string', default: '4' },
    mbit: { type: 'string', default: '100' },
    rounds: { type: 'string', default: '5' },
    policies: { type: 'string' },
    corpus: { type: 'string' },
    dask: { type: 'string' },
  },
  allowPositionals: true,
});

/** The links are idle for most of the time of the first six, and the others wait for them. */
const GRAPHS = [
  'map:40@250ms,100kB',
  'merge:24@200ms,500kB',
  'tree:5@150ms,1MB',
  'chains:6,6@150ms,1MB',
  'wordbag:4@200ms,500kB',
  'busy:chains:2,24@80ms,500kB',
  'shuffle:4@100ms,2MB',
  'overlap:6,4@100ms,2MB',
  'mapreduce:8@100ms,1MB',
  'crossv:2@100ms,4MB',
];
const GRAPHS_OF_POLICIES = [
  'tree:6@100ms,1MB',
  'chains:6,6@100ms,1MB',
  'merge:24@100ms,1MB',
  'wordbag:8@100ms,1MB',
  'shuffle:4@100ms,2MB',
  'shuffle:5@100ms,500kB',
  'overlap:6,4@100ms,2MB',
  'overlap:4,8@60ms,500kB',
  'mapreduce:8@100ms,1MB',
  'crossv:2@100ms,1MB',
];
/** Of a corpus: graphs with so many tasks, and seconds that the bound of each shall have. */
const CORPUS = {
  leastTasks: 16,
  mostTasks: 100,
  graphs: 10,
  boundS: 1,
  linkBandwidth: 125e6,
};

/**
 * Measurements for the calibrated models: a chain of tasks that take no time shows what each costs on this machine now,
 * and transfers of all to all which part of a link several of them get together.
 */
const CALIBRATIONS = ['chains:1,40@0ms,1kB', 'shuffle:4@0ms,2MB'];
const WARM_UP = { name: 'shuffle:6@2ms,200kB', rounds: 3 };

/** Simulations of a graph, and the standard deviation of the durations of tasks that sleep. */
const SIMULATIONS = 9;
const SPREAD = 0.003;

const workers = Number(flags.workers);
const rounds = Number(flags.rounds);
const bandwidth = 125e3 * Number(flags.mbit) * PAYLOAD_SHARE;
/** Everything that is known of the links without a measurement. */
const LINKS = { bandwidth, queueMs: 1000 * QUEUE_S };

/** The outcome of a run, real or simulated. */
interface Figures {
  readonly seconds: number;
  readonly movedBytes: number;
  readonly peakBytes: number;
}
type RealFigures = Figures & RunFigures;

async function graphsNamed(names: readonly string[]): Promise<RealGraph[]> {
  const graphs: RealGraph[] = [];
  for (const name of names) {
    const isBusy = name.startsWith('busy:');
    const workload = await loadWorkload(isBusy ? name.slice(5) : name);
    graphs.push({ workload: { ...workload, name }, isBusy });
  }
  return graphs;
}

/** Graphs of a folder, in which computing and moving take parts of the time as on links of 1 Gbit/s. */
async function graphsOf(folder: string): Promise<RealGraph[]> {
  const { leastTasks, mostTasks, graphs, boundS, linkBandwidth } = CORPUS;
  const all = await loadWorkloads(folder);
  const fit = all.filter(({ tasks }) => tasks.length >= leastTasks && tasks.length <= mostTasks);
  const step = Math.max(1, fit.length / graphs);
  const chosen = Array.from(
    { length: Math.min(graphs, fit.length) },
    (_, at) => fit[Math.floor(at * step)]!,
  );
  return chosen.map((workload): RealGraph => {
    const options = { workers, network: { bandwidth: linkBandwidth } };
    const factor = boundS / lowerBoundS(problemOf(workload, options));
    const sizeFactor = (factor * bandwidth) / linkBandwidth;
    const durationsS = workload.durationsS.map((seconds) => factor * seconds);
    const nbytes = workload.nbytes.map((bytes) => Math.round(sizeFactor * bytes));
    return { workload: { ...workload, durationsS, nbytes }, isBusy: false };
  });
}

/** Runs every graph in some rounds on each cluster, with the first cluster in turn. @returns figures by graph and cluster */
async function measure(
  clusters: readonly RealCluster[],
  graphs: readonly RealGraph[],
): Promise<RealFigures[][][]> {
  const [warmUp] = await graphsNamed([WARM_UP.name]);
  for (const cluster of clusters) {
    for (let round = 0; round < WARM_UP.rounds; round++) await cluster.run(warmUp!);
  }
  const made: { readonly number: number; readonly seconds: number }[][][] = [];
  for (const graph of graphs) {
    const runs: { readonly number: number; readonly seconds: number }[][] = clusters.map(() => []);
    for (let round = 0; round < rounds; round++) {
      for (const at of clusters.keys()) {
        const which = round % 2 === 0 ? at : clusters.length - 1 - at;
        runs[which]!.push(await clusters[which]!.run(graph));
        await pause(100);
      }
    }
    made.push(runs);
  }
  const recorded: ReadonlyMap<number, RunFigures>[] = [];
  for (const cluster of clusters) recorded.push(await cluster.end());
  return made.map((runs) =>
    runs.map((ofCluster, at) =>
      ofCluster.map(({ number, seconds }) => ({
        seconds,
        ...recorded[at]!.get(number)!,
      })),
    ),
  );
}

/**
 * Simulations of the runs of a graph, which differ as these do: in when intervals of the scheduler end, in the bandwidth
 * that it expects, and by how little tasks take longer.
 */
async function simulated(
  workload: SimulatedWorkload,
  { overrides }: PolicyVariant,
  models: SimulationOptions,
  real: readonly RealFigures[],
): Promise<Figures[]> {
  const all: Figures[] = [];
  for (let seed = 1; seed <= SIMULATIONS; seed++) {
    const expected = Math.round(real[seed % real.length]!.expectedBandwidth);
    const simulation = await Simulation.start({
      ...models,
      workers,
      seed,
      durations: { ...models.durations, spread: SPREAD },
      overrides: {
        scheduler: { ...overrides?.scheduler, bandwidth: expected },
      },
    });
    simulation.submit(workload, {
      atMs: 1000 * new Draw(seed).uniform('submission'),
    });
    await simulation.run();
    const { makespanS, movedBytes, peakWorkerBytes } = simulation.report();
    all.push({ seconds: makespanS, movedBytes, peakBytes: peakWorkerBytes });
    await simulation.close();
  }
  return all;
}

/** The models of the cluster, fitted to runs of {@link CALIBRATIONS}. */
async function calibrated(
  graphs: readonly RealGraph[],
  measured: readonly (readonly (readonly RealFigures[])[])[],
  variant: PolicyVariant,
): Promise<SimulationOptions> {
  const [chain, transfers] = graphs.map(({ workload }) => workload);
  const [ofChain, ofTransfers] = measured.map(([runs]) => runs);
  const taskMs = (1000 * median(ofChain!, 'seconds')) / chain!.tasks.length;
  const latencyMs = Math.min(0.5, taskMs / 2);
  const durations = { overheadMs: Math.max(0, taskMs - 2 * latencyMs) };
  const network = { ...LINKS, latencyMs };
  const ideal = await simulated(transfers!, variant, { network, durations }, ofTransfers!);
  const share = Math.min(1, median(ideal, 'seconds') / median(ofTransfers!, 'seconds'));
  return { network: { ...network, bandwidth: share * bandwidth }, durations };
}

function median(all: readonly Figures[], figure: keyof Figures): number {
  const sorted = all.map((each) => each[figure]).toSorted((one, other) => one - other);
  const middle = (sorted.length - 1) / 2;
  return (sorted[Math.floor(middle)]! + sorted[Math.ceil(middle)]!) / 2;
}

async function compareWithSimulation(
  places: readonly Place[],
  graphs: readonly RealGraph[],
  folder: string,
): Promise<void> {
  const variant = await readVariant('default');
  const cluster = await RealCluster.start(places, {}, join(folder, 'cluster'), flags.dask);
  const calibrations = await graphsNamed(CALIBRATIONS);
  const measured = await measure([cluster], [...calibrations, ...graphs]);
  const real = measured.slice(calibrations.length);
  const fitted = await calibrated(calibrations, measured, variant);
  const errors = { plain: [] as number[], calibrated: [] as number[] };
  const rows: (string | number)[][] = [];
  for (const [at, { workload }] of graphs.entries()) {
    const runs = real[at]![0]!;
    const plain = await simulated(workload, variant, { network: LINKS }, runs);
    const fit = await simulated(workload, variant, fitted, runs);
    const realS = median(runs, 'seconds');
    const plainRatio = median(plain, 'seconds') / realS;
    const fitRatio = median(fit, 'seconds') / realS;
    errors.plain.push(plainRatio - 1);
    errors.calibrated.push(fitRatio - 1);
    rows.push([
      workload.name,
      secondsText(runs),
      secondsText(plain),
      percent(plainRatio),
      secondsText(fit),
      percent(fitRatio),
      ...(['movedBytes', 'peakBytes'] as const).map(
        (figure) => `${megabytes(median(runs, figure))} / ${megabytes(median(fit, figure))}`,
      ),
    ]);
  }
  const figures = ['moved MB', 'peak MB'];
  const titles = ['graph', 'real s', 'plain s', 'error', 'calibrated s', 'error', ...figures];
  console.log(textTable(titles, rows));
  const {
    latencyMs,
    overheadMs,
    bandwidth: fittedBandwidth,
  } = {
    ...fitted.network,
    ...fitted.durations,
  };
  console.log(
    `calibrated: latency ${latencyMs?.toFixed(2)} ms, overhead ${overheadMs?.toFixed(2)} ms, bandwidth ${megabytes(fittedBandwidth ?? 0)} of ${megabytes(bandwidth)} MB/s`,
  );
  for (const [name, values] of Object.entries(errors)) {
    const size = (100 * meanOf(values.map(Math.abs))).toFixed(1);
    console.log(`${name}: mean size of the errors ${size} %, mean ${percent(1 + meanOf(values))}`);
  }
}

async function comparePair(
  places: readonly Place[],
  graphs: readonly RealGraph[],
  folder: string,
  names: readonly string[],
): Promise<void> {
  const variants = await Promise.all(names.map(readVariant));
  const clusters: RealCluster[] = [];
  for (const [at, { overrides = {} }] of variants.entries()) {
    const own = join(folder, `cluster-${at}`);
    clusters.push(await RealCluster.start(places, overrides, own, flags.dask));
  }
  const real = await measure(clusters, graphs);
  const ratios: number[] = [];
  const expected: number[] = [];
  const rows: (string | number)[][] = [];
  for (const [at, { workload }] of graphs.entries()) {
    const [first, second] = real[at] as [RealFigures[], RealFigures[]];
    const logs = first.map(({ seconds }, round) => Math.log(seconds / second[round]!.seconds));
    const simulations: Figures[][] = [];
    for (const [which, variant] of variants.entries()) {
      simulations.push(await simulated(workload, variant, { network: LINKS }, real[at]![which]!));
    }
    const [ofFirst, ofSecond] = simulations as [Figures[], Figures[]];
    const expectedLogs = ofFirst.map(({ seconds }, seed) =>
      Math.log(seconds / ofSecond[seed]!.seconds),
    );
    ratios.push(Math.exp(meanOf(logs)));
    expected.push(Math.exp(meanOf(expectedLogs)));
    rows.push([
      workload.name,
      secondsText(first),
      secondsText(second),
      ratioText(logs),
      ratioText(expectedLogs),
      `${megabytes(median(first, 'movedBytes'))} / ${megabytes(median(second, 'movedBytes'))}`,
      `${megabytes(median(ofFirst, 'movedBytes'))} / ${megabytes(median(ofSecond, 'movedBytes'))}`,
    ]);
  }
  const [first, second] = names;
  const titles = ['graph', `${first} s`, `${second} s`, 'ratio', 'simulated', 'moved MB'];
  console.log(textTable([...titles, 'simulated'], rows));
  for (const [name, values] of Object.entries({
    real: ratios,
    simulated: expected,
  })) {
    const better = values.filter((ratio) => ratio < 1).length;
    const worse = values.filter((ratio) => ratio > 1.03).length;
    const mean = ratioText(values.map(Math.log));
    console.log(
      `${name}: ${first} beside ${second} ${mean}, better on ${better} of ${values.length}, worse by more than 3 % on ${worse}`,
    );
  }
}

/** A geometric mean with its 95 % interval. */
function ratioText(logs: readonly number[]): string {
  const { mean, margin } = interval(logs) ?? {
    mean: meanOf(logs),
    margin: NaN,
  };
  const [ratio, low, high] = [mean, mean - margin, mean + margin].map((log) =>
    Math.exp(log).toFixed(3),
  );
  return `${ratio} (${low}-${high})`;
}

/** The median, and the range. */
function secondsText(all: readonly Figures[]): string {
  const seconds = all.map((each) => each.seconds);
  const range = [Math.min(...seconds), Math.max(...seconds)].map((each) => each.toFixed(2));
  return `${median(all, 'seconds').toFixed(2)} (${range.join('-')})`;
}

function percent(ratio: number): string {
  return `${ratio < 1 ? '-' : '+'}${Math.abs(100 * (ratio - 1)).toFixed(1)} %`;
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}

async function main(folder: string): Promise<void> {
  const pair = flags.policies?.split(',');
  if (pair !== undefined && pair.length !== 2) throw new Error('--policies takes two: A,B');
  const usual = pair === undefined ? GRAPHS : GRAPHS_OF_POLICIES;
  const graphs = [
    ...(await graphsNamed(
      positionals.length + (flags.corpus ?? '').length > 0 ? positionals : usual,
    )),
    ...(flags.corpus === undefined ? [] : await graphsOf(flags.corpus)),
  ];
  const places = makePlaces(workers, 1e6 * Number(flags.mbit));
  const whose = flags.dask === undefined ? 'workers' : 'workers of Dask';
  console.log(
    `${workers} ${whose} with links of ${flags.mbit} Mbit/s, ${rounds} rounds, ${cpus().length} processors, load ${loadText()}`,
  );
  if (pair === undefined) await compareWithSimulation(places, graphs, folder);
  else await comparePair(places, graphs, folder, pair);
  console.log(`load at the end ${loadText()}`);
}

/** Of the last minute; what runs besides this makes tasks wait for a processor. */
function loadText(): string {
  return loadavg()[0]!.toFixed(2);
}

const folder = await enterNamespaces();
if (folder !== undefined) await main(folder);
