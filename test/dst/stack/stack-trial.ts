/**
 * One seed for the whole program: real clients, the scheduler with its sessions, real workers and the codec, over a
 * network in memory whose connections break, stand still and are refused. Virtual time; tasks run inline.
 */
import { Client, type Future, LocalCluster } from '../../../adapters/app/index.ts';
import { definePlugin } from '../../../adapters/app/entries/plugin.ts';
import { startWorker } from '../../../adapters/app/start-worker.ts';
import { VirtualClock } from '../../../adapters/clocks/virtual-clock.ts';
import { BUILTIN_POLICIES } from '../../../adapters/simulator/index.ts';
// Imports what a cluster imports when it starts: no virtual time passes while modules are read.
import '../../../adapters/testing/index.ts';
import { drive } from '../../../adapters/testing/drive.ts';
import { lineLog } from '../../../adapters/testing/line-log.ts';
import { SLOT_NAMES, YardmasterError } from '../../../core/api/index.ts';
import { Digest } from '../../../core/log/digest.ts';
import { Dice } from '../dice.ts';
import { evaluate } from '../swarm.ts';
import type { Verdict } from '../trial.ts';
import { Network, type Planted } from './network.ts';
import { fail, mix, runBy } from './tasks.ts';

/** Within this time of virtual milliseconds things happen. */
const HORIZON_MS = 3000;
/** Virtual milliseconds in which all must be settled after that. */
const SETTLE_MS = 900_000;
const KINDS = ['cut', 'stall', 'kill', 'join', 'swap', 'cancel'] as const;

interface NamedClient {
  readonly name: string;
  readonly client: Client;
}

/** A future, and what has to come of it. */
interface Wanted {
  readonly key: string;
  readonly future: Future<number>;
  /** Undefined: the task, or one that it needs, fails. */
  readonly expected: number | undefined;
  /** Name of the client that wants it. */
  readonly client: string;
  isCancelled: boolean;
}

class StackTrial {
  readonly logged: string[] = [];
  private readonly dice: Dice;
  private readonly clock = new VirtualClock();
  private readonly network: Network;
  private readonly digest = new Digest();
  /** Addresses of workers by name, of those that live. */
  private readonly workers = new Map<string, string>();
  private readonly closing: (() => Promise<void>)[] = [];
  private readonly starting: Promise<void>[] = [];
  private readonly wanted: Wanted[] = [];
  /** What they said last may never have arrived. */
  private readonly cutPeers = new Set<string>();
  private readonly kinds: readonly (typeof KINDS)[number][];
  private cluster!: LocalCluster;
  private clientCount = 0;
  private workerCount = 0;

  constructor(
    readonly seed: number,
    planted?: Planted,
  ) {
    this.dice = new Dice(seed);
    this.network = new Network(this.clock, this.dice.oneOf([0.1, 1, 20]), planted);
    this.kinds = KINDS.filter(() => this.dice.chance(0.5));
  }

  get summary(): string {
    return `${this.wanted.length} tasks, ${this.clientCount} clients, ${this.workerCount} workers, trouble: ${this.kinds.join(' ') || 'none'}`;
  }

  get traceHash(): string {
    return this.digest.toString();
  }

  /** @throws when anything is wrong */
  async play(): Promise<void> {
    const { dice, clock } = this;
    runBy(clock);
    await this.start();
    const clients: NamedClient[] = [];
    for (let count = dice.between(1, 2); count > 0; count--) clients.push(await this.connect());
    const events = Array.from({ length: dice.between(4, 12) }, () => dice.between(0, HORIZON_MS));
    for (const client of clients) this.submit(client);
    for (const atMs of events.sort((one, other) => one - other)) {
      if (atMs > clock.nowMs()) await clock.advanceToAsync(atMs);
      if (dice.chance(0.3)) this.submit(dice.oneOf(clients));
      else if (this.kinds.length > 0) await this.trouble(dice.oneOf(this.kinds));
    }
    await this.calm();
    await this.checkResults();
  }

  async end(): Promise<void> {
    for (const close of this.closing.toReversed()) {
      await drive(this.clock, close()).catch(() => undefined);
    }
    runBy(undefined);
  }

  private async start(): Promise<void> {
    const { dice, digest, clock } = this;
    const watch = definePlugin({
      name: 'watch',
      apiVersion: 1,
      setup: () => ({
        taskTransition: (task, from, to) => {
          digest.addText(`${task.key} ${from} ${to}`);
          digest.add(clock.nowMs());
        },
      }),
    });
    this.cluster = await drive(
      clock,
      LocalCluster.start({
        mode: 'inline',
        workers: 0,
        clock,
        transport: this.network.of('scheduler'),
        log: lineLog(this.logged),
        config: {
          scheduler: {
            validate: true,
            allowedFailures: 1000,
            plugins: [{ use: watch }],
            activeMemoryManager: { start: dice.chance(0.3), interval: '200 ms' },
          },
        },
      }),
    );
    this.closing.push(() => this.cluster.close());
    for (let count = dice.between(1, 4); count > 0; count--) this.join();
    await drive(clock, Promise.all(this.starting));
  }

  private async connect(): Promise<NamedClient> {
    const name = `client-${this.clientCount++}`;
    const client = await drive(
      this.clock,
      Client.connect(this.cluster.address, {
        name,
        clock: this.clock,
        transports: [this.network.of(name)],
        onSchedulerLost: 'reconnect',
        reconnectTimeoutMs: SETTLE_MS,
      }),
    );
    this.closing.push(() => client.close());
    return { name, client };
  }

  private join(): void {
    const { dice, clock, network, cluster } = this;
    const name = `worker-${this.workerCount++}`;
    const started = startWorker(cluster.address, {
      name,
      clock,
      executor: 'inline',
      isGuest: true,
      validate: true,
      threads: dice.between(1, 3),
      log: lineLog(this.logged),
      transports: [network.of(name)],
      onSchedulerLost: 'reconnect',
      reconnectTimeoutMs: SETTLE_MS,
    });
    this.starting.push(
      started.then((worker) => {
        this.workers.set(name, worker.address);
        this.closing.push(() => worker.close());
        // Its end is a fault of the trial, or the end of the trial.
        worker.closed.catch(() => undefined);
      }),
    );
  }

  private submit({ name, client }: NamedClient): void {
    const { dice, wanted } = this;
    const first = wanted.length;
    const longest = dice.oneOf([0, 20, 300]);
    const failing = dice.oneOf([0, 0, 0.05]);
    for (let count = dice.between(2, 25); count > 0; count--) {
      const key = `t${wanted.length}`;
      const inputs = Array.from({ length: wanted.length > first ? dice.between(0, 3) : 0 }, () => {
        return wanted[dice.between(first, wanted.length - 1)]!;
      }).filter(({ isCancelled }) => !isCancelled);
      const durationMs = dice.between(0, longest);
      const isFailing = dice.chance(failing);
      const future = isFailing
        ? client.submit(fail, key, durationMs)
        : client.submit(
            mix,
            key,
            durationMs,
            inputs.map((input) => input.future),
          );
      const values = inputs.map(({ expected }) => expected);
      const isDoomed = isFailing || values.includes(undefined);
      const expected = isDoomed ? undefined : evaluate(key, values as number[]);
      wanted.push({ key, future, expected, client: name, isCancelled: false });
    }
  }

  private async trouble(kind: (typeof KINDS)[number]): Promise<void> {
    const { dice, network, cluster, workers } = this;
    const clients = Array.from({ length: this.clientCount }, (_, index) => `client-${index}`);
    const peer = dice.oneOf([...workers.keys(), ...clients]);
    const address = dice.oneOf([undefined, cluster.address, ...workers.values()]);
    if (kind === 'cut') {
      network.cut(peer, address);
      this.cutPeers.add(peer);
    } else if (kind === 'stall') {
      network.stall(peer, address);
      this.clock.setTimer(dice.between(1, 2000), () => {
        network.restore(peer);
      });
    } else if (kind === 'kill') this.kill();
    else if (kind === 'join') this.join();
    else if (kind === 'cancel') this.cancel();
    else {
      const slot = dice.oneOf(SLOT_NAMES);
      const policy = dice.oneOf(BUILTIN_POLICIES[slot]);
      await drive(this.clock, cluster.scheduler.replacePolicy(slot, policy));
    }
  }

  private kill(): void {
    const { dice, network, workers } = this;
    const name = dice.oneOf([...workers.keys(), undefined]);
    if (name === undefined) return;
    network.kill(name, workers.get(name)!);
    workers.delete(name);
    if (workers.size === 0 || dice.chance(0.7)) this.join();
  }

  /** Cancels a task that no other one needs. */
  private cancel(): void {
    const last = this.wanted.at(-1);
    if (last === undefined || last.isCancelled) return;
    last.isCancelled = true;
    last.future.cancel();
  }

  private async calm(): Promise<void> {
    const { clock, network, workers } = this;
    if (clock.nowMs() < HORIZON_MS + 2000) await clock.advanceToAsync(HORIZON_MS + 2000);
    for (const name of workers.keys()) network.restore(name);
    for (let index = 0; index < this.clientCount; index++) network.restore(`client-${index}`);
    await drive(clock, Promise.all(this.starting), { maxMs: SETTLE_MS });
  }

  private async checkResults(): Promise<void> {
    for (const { key, future, expected, client, isCancelled } of this.wanted) {
      const settled = future.result().then(
        (value) => ({ value }),
        (error: unknown) => ({ error }),
      );
      const outcome: { value?: number; error?: unknown } = await drive(this.clock, settled, {
        maxMs: SETTLE_MS,
      });
      const { value, error } = outcome;
      // Without a journal the client is told which of its tasks the scheduler does not know.
      const isLost = this.cutPeers.has(client) && YardmasterError.is(error, 'ERR_LOST');
      if (isCancelled || isLost) continue;
      if (expected !== undefined && value !== expected) {
        throw new Error(`${key} gave ${value ?? String(error)} instead of ${expected}`);
      }
      if (expected === undefined && !(error instanceof RangeError || YardmasterError.is(error))) {
        throw new Error(`${key} was to fail, and gave ${value ?? String(error)}`);
      }
    }
  }
}

/** Runs a seed twice: its checks must hold, and both runs must be equal. */
export async function checkStack(seed: number, planted?: Planted): Promise<Verdict> {
  const first = await playStack(seed, planted);
  if (first.problem !== undefined) return first;
  const second = await playStack(seed, planted);
  if (second.traceHash === first.traceHash) return first;
  const problem = `two runs of the seed differ: ${first.traceHash} and ${second.traceHash}`;
  return { ...first, problem };
}

let isWarm = false;

/** Loads every policy: the first swap would otherwise wait for a file, in real time. */
async function warmUp(): Promise<void> {
  isWarm = true;
  await using cluster = await LocalCluster.start({ mode: 'inline', workers: 1 });
  for (const slot of SLOT_NAMES) {
    for (const policy of BUILTIN_POLICIES[slot]) {
      await cluster.scheduler.replacePolicy(slot, policy);
    }
  }
}

/** Runs a seed once. */
export async function playStack(seed: number, planted?: Planted): Promise<Verdict> {
  if (!isWarm) await warmUp();
  const trial = new StackTrial(seed, planted);
  let problem: string | undefined;
  try {
    await trial.play();
  } catch (error) {
    problem = error instanceof Error ? error.message : String(error);
  }
  problem ??= trial.logged.find((line) => /is a bug|inconsistent/.test(line));
  const { summary, traceHash } = trial;
  await trial.end();
  return { seed, summary, traceHash, problem };
}
