/** What clients have submitted, and what has to come of it. */
import type { Client, Future } from '../../../adapters/app/index.ts';
import type { VirtualClock } from '../../../adapters/clocks/virtual-clock.ts';
import { drive } from '../../../adapters/testing/drive.ts';
import { YardmasterError } from '../../../core/api/index.ts';
import type { Dice } from '../dice.ts';
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
  isCancelled: boolean;
  /** The scheduler has said that its journal has it. */
  isCommitted: boolean;
}

export class Expectations {
  private readonly wanted: Wanted[] = [];
  /** How often tasks have run, by name. */
  private readonly runs = new Map<string, number>();

  constructor(
    private readonly plan: StackPlan,
    private readonly clock: VirtualClock,
  ) {}

  /** Tasks so far. */
  get count(): number {
    return this.wanted.length;
  }

  noteRun(name: string): void {
    this.runs.set(name, (this.runs.get(name) ?? 0) + 1);
  }

  /** A random graph. */
  submit({ name: client, client: submitter }: NamedClient, dice: Dice): void {
    const { wanted, plan } = this;
    const first = wanted.length;
    const longest = dice.oneOf([0, 20, 300]);
    const failing = dice.oneOf([0, 0, 0.05]);
    const lengthMax = plan.memoryLimitBytes === undefined ? 0 : plan.memoryLimitBytes / 40;
    for (let count = dice.between(2, 25); count > 0 && wanted.length < plan.tasksMax; count--) {
      const name = `t${wanted.length}`;
      const inputs = Array.from({ length: wanted.length > first ? dice.between(0, 3) : 0 }, () => {
        return wanted[dice.between(first, wanted.length - 1)]!;
      }).filter(({ isCancelled }) => !isCancelled);
      const durationMs = dice.between(0, longest);
      const isFailing = dice.chance(failing);
      const futures = inputs.map((input) => input.future);
      const length = dice.between(0, lengthMax);
      const future = isFailing
        ? submitter.submit(fail, name, durationMs)
        : submitter.submit(mix, name, durationMs, futures, length);
      const values = inputs.map(({ expected }) => expected);
      const isDoomed = isFailing || values.includes(undefined);
      const expected = isDoomed ? undefined : evaluate(name, values as number[]);
      wanted.push({ name, future, expected, client, isCancelled: false, isCommitted: false });
    }
  }

  /** Cancels a task that no other one needs. */
  cancel(): void {
    const last = this.wanted.at(-1);
    if (last === undefined || last.isCancelled) return;
    last.isCancelled = true;
    last.future.cancel();
  }

  /**
   * Asks whether the journal has what the client has submitted so far: from the answer on it must survive.
   * @throws what `committed` throws
   */
  async commit({ name, client }: NamedClient): Promise<void> {
    const before = this.wanted.filter((each) => each.client === name);
    await client.committed();
    for (const each of before) each.isCommitted = true;
  }

  /** The name of a task that was acknowledged and that a scheduler with these tasks does not know. */
  lostBy(tasks: ReadonlyMap<string, unknown>): string | undefined {
    return this.wanted.find(
      ({ isCommitted, isCancelled, future }) =>
        isCommitted && !isCancelled && !tasks.has(future.key),
    )?.name;
  }

  /**
   * Waits for all results. @throws when one is not that of a sequential evaluation, or does not come
   * @param mayBeLost - whether the client may have this error for any of its tasks
   */
  async check(mayBeLost: (client: string, error: unknown) => boolean): Promise<void> {
    for (const { name, future, expected, client, isCancelled } of this.wanted) {
      const settled = future.result().then(
        (value) => ({ value: numberOf(value) }),
        (error: unknown) => ({ error }),
      );
      const outcome: { value?: number; error?: unknown } = await drive(this.clock, settled, {
        maxMs: SETTLE_MS,
      });
      const { value, error } = outcome;
      if (isCancelled || mayBeLost(client, error)) continue;
      if (expected !== undefined && value !== expected) {
        throw new Error(`${name} gave ${value ?? String(error)} instead of ${expected}`);
      }
      if (expected === undefined && !(error instanceof RangeError || YardmasterError.is(error))) {
        throw new Error(`${name} was to fail, and gave ${value ?? String(error)}`);
      }
    }
  }

  /** @throws when a task has run twice */
  checkRuns(): void {
    for (const { name, isCancelled } of this.wanted) {
      const runs = this.runs.get(name) ?? 0;
      if (runs > 1 && !isCancelled) throw new Error(`${name} ran ${runs} times`);
    }
  }
}
