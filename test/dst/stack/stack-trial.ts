/**
 * One seed for the whole program: real clients, the scheduler with its sessions and its journal, real workers that spill,
 * and the codec, over a network in memory whose connections break, stand still and are refused, and disks in memory that
 * fail. The scheduler is killed and starts again from its journal. Virtual time; tasks run inline.
 */
import { Client, LocalCluster } from '../../../adapters/app/index.ts';
import { VirtualClock } from '../../../adapters/clocks/virtual-clock.ts';
import { BUILTIN_POLICIES } from '../../../adapters/simulator/index.ts';
// Imports what a cluster imports when it starts: no virtual time passes while modules are read.
import '../../../adapters/testing/index.ts';
import { drive, driveUntil } from '../../../adapters/testing/virtual-cluster.ts';
import { SLOT_NAMES, YardmasterError } from '../../../core/api/index.ts';
import { Digest } from '../../../core/log/digest.ts';
import { Dice } from '../dice.ts';
import type { DiskFaults } from '../disk/disk.ts';
import type { Reduction, Size } from '../reduction.ts';
import type { Verdict } from '../trial.ts';
import { Delivery } from './delivery.ts';
import { Expectations, type NamedClient, SETTLE_MS } from './expectations.ts';
import { Network } from './network.ts';
import { HORIZON_MS, type PlannedEvent, planOf, type StackPlan, type Trouble } from './plan.ts';
import type { Planted } from './planted.ts';
import { ADDRESS, SchedulerMachine } from './scheduler-machine.ts';
import { runOn } from './tasks.ts';
import { TrialWorkers } from './trial-workers.ts';

const FAULT_MS_MAX = 2000;
/** In which all is forgotten once no client wants anything. */
const KEPT_MS = 120_000;
/** In which workers hear of priorities, besides the time that messages take. */
const PRIORITY_MS = 20;
/** After these no task has a reason to run twice. */
const HARMLESS: ReadonlySet<Trouble> = new Set(['join', 'swap', 'cancel', 'restart', 'full-spill']);

class StackTrial {
  readonly logged: string[] = [];
  private readonly plan: StackPlan;
  private readonly clock = new VirtualClock();
  private readonly network: Network;
  private readonly digest = new Digest();
  private readonly machine: SchedulerMachine;
  private readonly workers: TrialWorkers;
  private readonly expectations: Expectations;
  private readonly clients: NamedClient[] = [];
  private readonly committing: Promise<void>[] = [];
  /** What they said last may never have arrived. */
  private readonly cutPeers = new Set<string>();
  private readonly happened = new Set<Trouble>();
  private prioritised = 0;
  private problem: string | undefined;

  constructor(
    readonly seed: number,
    reduction: Reduction = {},
    planted: Planted = {},
  ) {
    const { clock, digest, logged } = this;
    const plan = planOf(seed, reduction);
    const { memoryLimitBytes } = plan;
    this.plan = plan;
    const delivery = new Delivery(plan.schedule, clock, new Dice(seed, 'delivery'));
    const network = new Network(clock, plan.delayMs, (transport) =>
      delivery.over(planted.network?.(transport) ?? transport),
    );
    this.network = network;
    const onRestart = (): void => this.checkCommitted();
    this.machine = new SchedulerMachine({ seed, plan, clock, network, digest, planted, onRestart });
    this.workers = new TrialWorkers({ seed, clock, network, memoryLimitBytes, planted, logged });
    this.expectations = new Expectations(seed, plan, clock);
  }

  get summary(): string {
    const { plan, expectations, machine, workers } = this;
    const { journal, memoryLimitBytes, schedule, clients, kinds } = plan;
    const parts = [
      `${expectations.count} tasks, ${clients} clients, ${workers.count} workers`,
      ...(memoryLimitBytes === undefined ? [] : [`${memoryLimitBytes} bytes each`]),
      ...(journal === undefined
        ? []
        : [`journal ${JSON.stringify(journal)}, ${machine.ends} ends`]),
      `delivery: ${schedule}`,
      `trouble: ${[...new Set(kinds)].join(' ') || 'none'}`,
    ];
    return parts.join(', ');
  }

  get size(): Size {
    const { expectations, plan } = this;
    return { tasks: expectations.count, workers: plan.workers, events: plan.eventCount };
  }

  get traceHash(): string {
    return this.digest.toString();
  }

  /** @throws when anything is wrong */
  async play(): Promise<void> {
    const { plan, clock, machine, workers, expectations } = this;
    const dice = new Dice(this.seed, 'play');
    runOn({
      clock,
      onRun: (name) => expectations.noteRun(name),
      onRunEnd: (name) => expectations.noteRunEnd(name),
    });
    await drive(clock, machine.start());
    for (let count = plan.workers; count > 0; count--) workers.join(dice);
    await drive(clock, Promise.all(workers.starting));
    for (let count = plan.clients; count > 0; count--) await this.connect();
    for (const client of this.clients) expectations.submit(client, dice);
    for (const event of plan.events) {
      if (event.atMs > clock.nowMs()) await clock.advanceToAsync(event.atMs);
      await this.happen(event);
      this.check();
    }
    await this.calm();
    await expectations.check((client, error) => this.mayBeLost(client, error));
    this.check();
    // Nothing is computed twice when nothing but the process of the scheduler was lost.
    if (this.isHarmless) expectations.checkRuns(machine.ends + 1);
    await this.checkNothingKept();
  }

  private get isHarmless(): boolean {
    return [...this.happened].every((kind) => HARMLESS.has(kind));
  }

  /** When no client wants anything, the scheduler and its workers hold nothing. @throws what they hold */
  private async checkNothingKept(): Promise<void> {
    const { clock, machine, workers, expectations } = this;
    expectations.releaseAll();
    const kept = (): string[] => {
      const { cluster } = machine.running?.scheduler.kernel ?? {};
      const lists: [string, Iterable<string>][] = [
        ['the scheduler', cluster?.tasks.keys() ?? ['no life']],
      ];
      for (const { address, tables } of workers.tables()) {
        if (cluster?.workers.has(address) === true) lists.push([address, tables.tasks.keys()]);
      }
      return lists.flatMap(([who, keys]) => Array.from(keys, (key) => `${key} on ${who}`));
    };
    await driveUntil(clock, () => kept().length === 0, { maxMs: KEPT_MS }).catch(() => undefined);
    const [first] = kept();
    if (first !== undefined) throw new Error(`${first} is kept, and nobody wants it`);
  }

  /** What workers will run next has the priority that the scheduler knows. */
  private checkPriorities(): void {
    const { cluster } = this.machine.running?.scheduler.kernel ?? {};
    if (cluster === undefined) return;
    for (const { address, tables } of this.workers.tables()) {
      for (const { key, runId, isToBeComputed, priority } of tables.tasks.values()) {
        const task = cluster.tasks.get(key);
        if (task?.processingOn?.address !== address || task.runId !== runId) continue;
        if (!isToBeComputed || priority?.[0] === task.negatedUserPriority) continue;
        this.problem ??= `${key} has the priority ${-(priority?.[0] ?? 0)} on ${address}, and ${-task.negatedUserPriority} at the scheduler`;
      }
    }
  }

  async end(): Promise<void> {
    const { clock, clients, workers, machine } = this;
    const steps = [...clients.map(({ client }) => client), workers, machine];
    for (const step of steps) await drive(clock, step.close()).catch(() => undefined);
    this.logged.push(...machine.lines);
    runOn(undefined);
  }

  private async connect(): Promise<void> {
    const name = `client-${this.clients.length}`;
    const client = await drive(
      this.clock,
      Client.connect(ADDRESS, {
        name,
        clock: this.clock,
        transports: [this.network.of(name)],
        onSchedulerLost: 'reconnect',
        reconnectTimeoutMs: SETTLE_MS,
      }),
    );
    this.clients.push({ name, client });
  }

  private async happen({ what, dice }: PlannedEvent): Promise<void> {
    if (what === 'submit') this.expectations.submit(dice.oneOf(this.clients), dice);
    else if (what === 'commit') this.commit(dice.oneOf(this.clients));
    else if (what === 'release') this.expectations.release();
    else if (what === 'prioritise') this.prioritise(dice.oneOf(this.clients), dice);
    else {
      this.happened.add(what);
      await this.trouble(what, dice);
    }
  }

  private prioritise(client: NamedClient, dice: Dice): void {
    const { clock, expectations, plan } = this;
    expectations.prioritise(client, dice);
    const at = ++this.prioritised;
    clock.setTimer(20 * plan.delayMs + PRIORITY_MS, () => {
      if (at === this.prioritised && this.isHarmless && this.machine.ends === 0) {
        this.checkPriorities();
      }
    });
  }

  private commit(client: NamedClient): void {
    const committed = this.expectations.commit(client).catch((error: unknown) => {
      if (this.machine.hasGivenUpJournal) return;
      this.problem ??= `committed() failed: ${String(error)}`;
    });
    this.committing.push(committed);
  }

  private async trouble(kind: Trouble, dice: Dice): Promise<void> {
    const { machine, workers, expectations } = this;
    const disk = machine.disk.faults;
    const spill = workers.disks.get(dice.oneOf([...workers.disks.keys()]))!.faults;
    const happens: Readonly<Record<Trouble, () => void | Promise<void>>> = {
      cut: () => this.breakNetwork(kind, dice),
      stall: () => this.breakNetwork(kind, dice),
      kill: () => workers.kill(dice),
      join: () => workers.join(dice),
      cancel: () => expectations.cancel(),
      swap: () => this.swap(dice),
      restart: () => this.endScheduler('process', dice),
      power: () => this.endScheduler('power', dice),
      'full-disk': () => this.spoil(disk, { isFull: true }, dice),
      'failing-disk': () => this.spoil(disk, { isSyncFailing: true }, dice),
      'full-spill': () => this.spoil(spill, { isFull: true }, dice),
      'unreadable-spill': () => this.spoil(spill, { readFailures: 0.2 }, dice),
      'damaged-spill': () => this.spoil(spill, { flips: 0.2 }, dice),
    };
    await happens[kind]();
  }

  private breakNetwork(kind: 'cut' | 'stall' | Trouble, dice: Dice): void {
    const { network, workers, clients, clock, cutPeers } = this;
    const { addresses } = workers;
    const peer = dice.oneOf([...addresses.keys(), ...clients.map(({ name }) => name)]);
    const address = dice.oneOf([undefined, ADDRESS, ...addresses.values()]);
    if (kind === 'cut') {
      network.cut(peer, address);
      cutPeers.add(peer);
      return;
    }
    network.stall(peer, address);
    clock.setTimer(dice.between(1, FAULT_MS_MAX), () => network.restore(peer));
  }

  /** A disk fails for some time; a machine with such a disk may then lose its power. */
  private spoil(faults: DiskFaults, wrong: Partial<DiskFaults>, dice: Dice): void {
    const { clock, plan, machine } = this;
    const right = { isFull: false, isSyncFailing: false, readFailures: 0, flips: 0 };
    Object.assign(faults, wrong);
    const losesPower =
      wrong.isSyncFailing === true && plan.kinds.includes('power') && dice.chance(0.5);
    clock.setTimer(dice.between(1, FAULT_MS_MAX), () => {
      Object.assign(faults, right);
      if (losesPower) machine.kill('power', dice.between(0, FAULT_MS_MAX));
    });
  }

  /** Shortly after a submission, which is not on the disk yet; and again, in the middle of its recovery. */
  private async endScheduler(how: 'process' | 'power', dice: Dice): Promise<void> {
    const { clock, plan, machine } = this;
    if (dice.chance(0.5)) {
      this.expectations.submit(dice.oneOf(this.clients), dice);
      await clock.advanceAsync(plan.delayMs + dice.oneOf([0.1, 1, 5, 25]));
    }
    const backAfterMs = dice.between(0, FAULT_MS_MAX);
    machine.kill(how, backAfterMs);
    if (dice.chance(0.7)) return;
    clock.setTimer(backAfterMs + dice.oneOf([0.1, 2, 10, 100]), () => {
      machine.kill(how, dice.between(0, FAULT_MS_MAX));
    });
  }

  private async swap(dice: Dice): Promise<void> {
    const { running } = this.machine;
    const slot = dice.oneOf(SLOT_NAMES);
    const policy = dice.oneOf(BUILTIN_POLICIES[slot]);
    if (running === undefined) return;
    await drive(this.clock, running.scheduler.replacePolicy(slot, policy)).catch(
      (error: unknown) => {
        if (!YardmasterError.is(error, 'ERR_CLOSED')) throw error;
      },
    );
  }

  private async calm(): Promise<void> {
    const { clock, network, workers, clients, machine } = this;
    const calmMs = HORIZON_MS + FAULT_MS_MAX;
    if (clock.nowMs() < calmMs) await clock.advanceToAsync(calmMs);
    for (const name of workers.addresses.keys()) network.restore(name);
    for (const { name } of clients) network.restore(name);
    await driveUntil(clock, () => machine.running !== undefined || machine.problem !== undefined);
    this.check();
    await drive(clock, Promise.all(workers.starting), { maxMs: SETTLE_MS });
    await drive(clock, Promise.all(this.committing), { maxMs: SETTLE_MS });
  }

  /** @throws what has been found so far */
  private check(): void {
    const problem = this.problem ?? this.machine.problem ?? this.workers.problem;
    if (problem !== undefined) throw new Error(problem);
  }

  /** The scheduler is there again: it has read its journal. */
  private checkCommitted(): void {
    const lost = this.expectations.lostBy(this.machine.running!.scheduler.kernel.cluster);
    if (lost === undefined) return;
    this.problem ??= `${lost} was acknowledged, and the scheduler that came back does not know it`;
  }

  /** Without a journal the client learns which of its tasks the scheduler does not know. */
  private mayBeLost(client: string, error: unknown): boolean {
    const hasJournal = this.plan.journal !== undefined && !this.machine.hasGivenUpJournal;
    return !hasJournal && this.cutPeers.has(client) && YardmasterError.is(error, 'ERR_LOST');
  }
}

/** Runs a seed twice: its checks must hold, and both runs must be equal. */
export async function checkStack(
  seed: number,
  reduction?: Reduction,
  planted?: Planted,
): Promise<Verdict> {
  const first = await playStack(seed, reduction, planted);
  if (first.problem !== undefined) return first;
  const second = await playStack(seed, reduction, planted);
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
export async function playStack(
  seed: number,
  reduction?: Reduction,
  planted?: Planted,
): Promise<Verdict> {
  if (!isWarm) await warmUp();
  const trial = new StackTrial(seed, reduction, planted);
  const mend = planted?.patch?.();
  let problem: string | undefined;
  try {
    await trial.play();
  } catch (error) {
    problem = error instanceof Error ? error.message : String(error);
  }
  const { traceHash } = trial;
  await trial.end();
  mend?.();
  problem ??= trial.logged.find((line) => /is a bug|inconsistent/.test(line));
  const { summary, size } = trial;
  return { seed, summary, size, traceHash, problem };
}
