/** What clients have submitted, and what has to come of it. */
import type { Client, Future } from '../../../adapters/app/index.ts';
import type { Rate } from '../../../adapters/client/index.ts';
import type { VirtualClock } from '../../../adapters/clocks/virtual-clock.ts';
import { drive } from '../../../adapters/testing/virtual-cluster.ts';
import { YardmasterError } from '../../../core/api/index.ts';
import type { ClusterState } from '../../../core/state/cluster.ts';
import { Dice } from '../dice.ts';
import { evaluate } from '../swarm.ts';
import type { StackPlan } from './plan.ts';
import { fail, mix, numberOf, type Value } from './tasks.ts';

/** Virtual milliseconds in which all must be settled once the trouble is over. */
export const SETTLE_MS = 900_000;

export interface NamedClient {
  readonly name: string;
  readonly client: Client;
}

/** A future, and what has to come of it. */
interface Wanted {
  readonly name: string;
  readonly future: Future<Value>;
  /** Undefined: the task, or one that it needs, fails. */
  readonly expected: number | undefined;
  /** Name of the client that wants it. */
  readonly client: string;
  /** It fails by itself, whatever its inputs are. */
  readonly isFailing: boolean;
  readonly retries: number;
  /** Name of its limit. */
  readonly limit: string | undefined;
  /** What its client asked for last. */
  priority: number;
  /** How often its client has asked for another one. */
  priorityChanges: number;
  isCancelled: boolean;
  isReleased: boolean;
  /** The scheduler has said that its journal has it, with what was asked for until then. */
  committed: { readonly isGivenUp: boolean; readonly priorityChanges: number } | undefined;
}

/** A task that runs more often is one that never ends. */
const RUNS_MAX = 60;
const LIMIT_NAMES = ['red', 'blue'] as const;

export class Expectations {
  private readonly wanted: Wanted[] = [];
  /** How often tasks have run, by name. */
  private readonly runs = new Map<string, number>();
  private readonly byName = new Map<string, Wanted>();
  /** Tasks of a limit that run, and were not given up. */
  private readonly running = new Map<string, Set<string>>();
  private readonly limits: Readonly<Record<string, number>>;
  private readonly rates: Readonly<Record<string, { readonly rate?: Rate }>>;
  /** A limit that was exceeded. */
  private exceeded: string | undefined;
  /** Rejects when a task runs without end. */
  private readonly endless: Promise<never>;
  private failEndless: (error: Error) => void = () => undefined;
  private graphs = 0;

  constructor(
    private readonly seed: number,
    private readonly plan: StackPlan,
    private readonly clock: VirtualClock,
  ) {
    const dice = new Dice(seed, 'limits');
    this.limits = Object.fromEntries(LIMIT_NAMES.map((name) => [name, dice.between(1, 3)]));
    this.rates = Object.fromEntries(
      LIMIT_NAMES.map((name) => [name, dice.chance(0.3) ? { rate: '20/s' } : {}]),
    );
    this.endless = new Promise((_, reject) => (this.failEndless = reject));
    this.endless.catch(() => undefined);
  }

  /** Tasks so far. */
  get count(): number {
    return this.wanted.length;
  }

  /** Returns whether the run may end. */
  noteRun(name: string): boolean {
    const count = (this.runs.get(name) ?? 0) + 1;
    this.runs.set(name, count);
    if (count > RUNS_MAX)
      this.failEndless(new Error(`${name} ran ${count} times, and no end of it`));
    const limit = this.byName.get(name)?.limit;
    if (limit !== undefined) {
      const running = this.running.get(limit) ?? new Set();
      this.running.set(limit, running.add(name));
      const givenUp = [...running].filter((each) => isGivenUp(this.byName.get(each)));
      const count = running.size - givenUp.length;
      const max = this.limits[limit] ?? 0;
      if (count > max) {
        this.exceeded ??= `${count} tasks with the limit ${limit} ran at once, of which ${max} may`;
      }
    }
    return count <= RUNS_MAX;
  }

  noteRunEnd(name: string): void {
    const limit = this.byName.get(name)?.limit;
    if (limit !== undefined) this.running.get(limit)?.delete(name);
  }

  /** A random graph. */
  submit({ name: client, client: submitter }: NamedClient, dice: Dice): void {
    const { wanted, plan } = this;
    const rules = new Dice(this.seed, `rules-${this.graphs++}`);
    const limited = rules.chance(0.4) ? rules.oneOf(LIMIT_NAMES) : undefined;
    const retrying = rules.chance(0.5);
    const first = wanted.length;
    const longest = dice.oneOf([0, 20, 300]);
    const failing = dice.oneOf([0, 0, 0.05]);
    const lengthMax = plan.memoryLimitBytes === undefined ? 0 : plan.memoryLimitBytes / 40;
    for (let count = dice.between(2, 25); count > 0 && wanted.length < plan.tasksMax; count--) {
      const name = `t${wanted.length}`;
      const inputs = Array.from({ length: wanted.length > first ? dice.between(0, 3) : 0 }, () => {
        return wanted[dice.between(first, wanted.length - 1)]!;
      }).filter((input) => !isGivenUp(input));
      const durationMs = dice.between(0, longest);
      const isFailing = dice.chance(failing);
      const futures = inputs.map((input) => input.future);
      const length = dice.between(0, lengthMax);
      const retries = retrying ? rules.between(0, 3) : 0;
      const priority = rules.oneOf([0, 0, 0, 3, -2]);
      const limit = limited !== undefined && rules.chance(0.7) ? limited : undefined;
      const by = submitter.with({
        retries,
        priority,
        ...(limit === undefined
          ? {}
          : { limit: { name: limit, max: this.limits[limit] ?? 1, ...this.rates[limit] } }),
      });
      const future = isFailing
        ? by.submit(fail, name, durationMs)
        : by.submit(mix, name, durationMs, futures, length);
      const values = inputs.map(({ expected }) => expected);
      const isDoomed = isFailing || values.includes(undefined);
      const expected = isDoomed ? undefined : evaluate(name, values as number[]);
      const item: Wanted = {
        ...{ name, future, expected, client, isFailing, retries, limit, priority },
        priorityChanges: 0,
        isCancelled: false,
        isReleased: false,
        committed: undefined,
      };
      wanted.push(item);
      this.byName.set(name, item);
    }
  }

  /** Cancels a task that no other one needs. */
  cancel(): void {
    const last = this.wanted.at(-1);
    if (last === undefined || isGivenUp(last)) return;
    last.isCancelled = true;
    last.future.cancel();
  }

  /** As {@link cancel}, without a word of it. */
  release(): void {
    const last = this.wanted.at(-1);
    if (last === undefined || isGivenUp(last)) return;
    last.isReleased = true;
    last.future.release();
  }

  /** Another priority for a few tasks that have not ended. */
  prioritise({ name, client }: NamedClient, dice: Dice): void {
    const open = this.wanted.filter(
      (each) => each.client === name && !isGivenUp(each) && each.future.status === 'pending',
    );
    const chosen = dice.some(open, 0.4);
    const priority = dice.between(-9, 9);
    for (const each of chosen) {
      each.priority = priority;
      each.priorityChanges++;
    }
    if (chosen.length > 0) {
      const futures = chosen.map(({ future }) => future);
      client.setPriority(futures, priority, { inputs: 'keep' });
    }
  }

  /**
   * Asks whether the journal has what the client has submitted so far: from the answer on it must survive.
   * @throws what `committed` throws
   */
  async commit({ name, client }: NamedClient): Promise<void> {
    const before = this.wanted
      .filter((each) => each.client === name)
      .map((each) => {
        const { priorityChanges } = each;
        return [each, { isGivenUp: isGivenUp(each), priorityChanges }] as const;
      });
    await client.committed();
    for (const [each, state] of before) each.committed = state;
  }

  /** What the scheduler that has read its journal does not know although it was acknowledged. */
  lostBy({ tasks, clients }: ClusterState): string | undefined {
    for (const each of this.wanted) {
      const { committed, future, name, client, priority, priorityChanges } = each;
      if (committed === undefined) continue;
      const task = tasks.get(future.key);
      if (committed.isGivenUp) {
        const keeps = [...clients.values()].find(
          ({ key, wantsWhat }) =>
            key.startsWith(client) && task !== undefined && wantsWhat.has(task),
        );
        if (keeps !== undefined) return `the end of ${name}`;
      } else if (isGivenUp(each)) continue;
      else if (task === undefined) return name;
      else if (
        // Of several changes since then, the journal may have the first ones only.
        committed.priorityChanges === priorityChanges &&
        task.negatedUserPriority !== -priority
      ) {
        if (future.status === 'pending' && task.state !== 'memory') {
          return `the priority of ${name}`;
        }
      }
    }
    return undefined;
  }

  /**
   * Waits for all results. @throws when one is not that of a sequential evaluation, or does not come
   * @param mayBeLost - whether the client may have this error for any of its tasks
   */
  async check(mayBeLost: (client: string, error: unknown) => boolean): Promise<void> {
    for (const each of this.wanted) {
      const { name, future, expected, client, isFailing, retries } = each;
      const settled = future.result().then(
        (value) => ({ value: numberOf(value) }),
        (error: unknown) => ({ error }),
      );
      const outcome: { value?: number; error?: unknown } = await drive(
        this.clock,
        Promise.race([settled, this.endless]),
        {
          maxMs: SETTLE_MS,
        },
      );
      const { value, error } = outcome;
      if (isGivenUp(each) || mayBeLost(client, error)) continue;
      if (expected !== undefined && value !== expected) {
        throw new Error(`${name} gave ${value ?? String(error)} instead of ${expected}`);
      }
      if (expected === undefined && !(error instanceof RangeError || YardmasterError.is(error))) {
        throw new Error(`${name} was to fail, and gave ${value ?? String(error)}`);
      }
      const runs = this.runs.get(name) ?? 0;
      if (isFailing && (error as Error | undefined)?.name === 'RangeError' && runs <= retries) {
        throw new Error(`${name} failed for good after ${runs} runs, and has ${retries} retries`);
      }
    }
  }

  /**
   * Only when nothing has happened that makes tasks run again.
   * @param lives - of the scheduler: one that starts again counts retries from 0
   * @throws when a task has run more often than it should, or more at once than their limit says
   */
  checkRuns(lives: number): void {
    for (const each of this.wanted) {
      const { name, isFailing, retries } = each;
      const runs = this.runs.get(name) ?? 0;
      const most = isFailing ? (retries + 1) * lives : 1;
      if (runs > most && !isGivenUp(each)) throw new Error(`${name} ran ${runs} times of ${most}`);
    }
    if (this.exceeded !== undefined) throw new Error(this.exceeded);
  }

  /** The clients want nothing any more. */
  releaseAll(): void {
    for (const each of this.wanted) {
      if (!isGivenUp(each)) each.future.release();
    }
  }
}

function isGivenUp(wanted: Wanted | undefined): boolean {
  return wanted?.isCancelled === true || wanted?.isReleased === true;
}
