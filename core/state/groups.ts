import { Tally } from '../util/collections.ts';
import { type Count, type Finite, type Name, SHOWN, type Size } from '../util/values.ts';
import type { CostModel } from './cluster.ts';
import { StateCounts, TASK_STATE_NAMES } from './state-names.ts';

/**
 * A task key names its prefix (the operation) and its group (the collection).
 *
 * Source: Dask's `key_split` and `key_split_group`, for keys that are texts; `test/core/state/data` has a table
 * of what the real functions answer. Lengths are in code points, as in Python.
 */

const HASH = /^[a-f0-9]{32}$/;
const LETTER_FIRST = /^\p{L}/u;
const LETTERS = /^\p{L}+$/u;
/** A word of this many letters that begins with one of `a` to `f` counts as a hash. */
const HASH_WORD_LENGTH = 8;
const DASH = 45;
const ZERO = 48;
const NINE = 57;
/** Name of what cannot be read. */
const OTHER = 'Other';

/** `('random-a1b2c3', 0)` → `random`; `inc-ab31c0…` → `inc`; anything unreadable → `Other`. */
export function prefixOfKey(key: string): string {
  const plain = plainName(key);
  if (plain !== undefined) return plain;
  const words = key.split('-');
  const head = words[0] as string;
  if (head === '') return OTHER;
  let name = LETTER_FIRST.test(head) ? head : strip(head.split(',')[0] as string, '_\'()"');
  for (let index = 1; index < words.length; index++) {
    const word = words[index] as string;
    if (!LETTERS.test(word) || isHashWord(word)) break;
    name += `-${word}`;
  }
  if (HASH.test(name)) return 'data';
  if (name === '') return OTHER;
  return name.startsWith('<') ? nameOfObject(name) : name;
}

/** `('random-a1b2c3', 0)` → `random-a1b2c3`; a plain key's group is its prefix. */
export function groupOfKey(key: string): string {
  if (key.startsWith('(')) return strip(key.split(',')[0] as string, '()"\'');
  if (HASH.test(key)) return 'data';
  return key.startsWith('<') ? nameOfObject(key) : prefixOfKey(key);
}

/** The common cases `name-123` and `name-ab31c0…`, without regular expressions. */
function plainName(key: string): string | undefined {
  const dash = key.indexOf('-');
  if (dash < 1 || dash === 32 || !isAsciiLetter(key.charCodeAt(0))) return undefined;
  return isNameEnd(key, dash) ? key.slice(0, dash) : undefined;
}

/** True when there is a dash, and a digit in the word behind it, so that the name ends here. Looks at ASCII alone. */
function isNameEnd(key: string, dash: number): boolean {
  if (key.charCodeAt(dash) !== DASH) return false;
  for (let index = dash + 1; index < key.length; index++) {
    const code = key.charCodeAt(index);
    if (code >= ZERO && code <= NINE) return true;
    if (!isAsciiLetter(code)) return false;
  }
  return false;
}

function isAsciiLetter(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90);
}

/** Dask looks at the first letter only, so `download` counts as one, too. */
function isHashWord(word: string): boolean {
  return word >= 'a' && word < 'g' && Array.from(word).length === HASH_WORD_LENGTH;
}

/** `<module.submodule.myclass object at 0xdaf372` → `myclass`. */
function nameOfObject(text: string): string {
  const word = firstWord(strip(text, '<>'));
  return word === '' ? OTHER : (word.split('.').at(-1) as string);
}

function strip(text: string, characters: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && characters.includes(text.charAt(start))) start++;
  while (end > start && characters.includes(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}

function firstWord(text: string): string {
  let start = 0;
  while (start < text.length && isSpace(text, start)) start++;
  let end = start;
  while (end < text.length && !isSpace(text, end)) end++;
  return text.slice(start, end);
}

/** True for the characters that Python's `str.split` takes for space: also four control characters, and no byte order mark. */
function isSpace(text: string, index: number): boolean {
  const code = text.charCodeAt(index);
  if (code >= 0x1c && code <= 0x20) return true;
  return code === 0x85 || (code !== 0xfeff && /\s/.test(text.charAt(index)));
}

/** One measured action of a task: `compute`, `transfer`, `disk-read`, … in seconds. */
export interface ActionTiming {
  readonly action: string;
  readonly startS: Finite;
  readonly stopS: Finite;
}

/** The facts about the tasks of one prefix that are worth remembering beyond the life of a scheduler. */
export interface KnownPrefix {
  readonly name: Name;
  /** Tasks that were measured. */
  readonly count: Count;
  /** Seconds that such a task takes, and bytes of its result: averages in which the latest tasks weigh more. */
  readonly durationS: Size;
  readonly nbytes: Size;
  /** Standard deviation of the natural logarithm of the seconds from that of the average. */
  readonly spread: Size;
}

/** Seconds from which on the durations of two tasks are compared. */
export const COMPARED_S_MIN = 0.001;

/**
 * All tasks of one operation (`random`, `sum`), whatever collection they belong to.
 * It learns how long such a task takes.
 */
export class TaskPrefix {
  [SHOWN]: object | 'prefix' = 'prefix';
  /** Exponentially weighted average of compute time in seconds; -1 while unknown. */
  durationAverageS: number;
  /** Longest time in seconds that a running task of this prefix was seen to take; -1 while unknown. */
  maxExecTimeS = -1;
  /** Deaths of workers while a task of this prefix was processing there. */
  suspicious = 0;
  /** Seconds of all computations and transfers of its tasks, forgotten ones included: they never fall. */
  computedS = 0;
  transferredS = 0;
  /** The number of tasks that ever entered each state. */
  readonly stateCounts = new StateCounts();
  readonly groups = new Set<TaskGroup>();
  /** The number of such tasks that count as one against the slots of a worker. */
  readonly sharing: SlotSharing;
  /** Tasks that are processing and have not seceded, over all workers. */
  processingCount = 0;
  /** Bytes of the results of groups that are gone. */
  nbytesGone = 0;
  private measured = 0;
  private logSum = 0;
  /** The expected duration of one more task of this prefix, in seconds. Kept by the methods below. */
  durationEstimateS: number;

  constructor(
    readonly name: string,
    private readonly costs: CostModel,
  ) {
    this.sharing = new SlotSharing(costs.slotWorkS);
    this.durationAverageS = costs.defaultTaskDurationsS.get(name) ?? -1;
    this.durationEstimateS = this.estimate();
  }

  /** Tasks now in each state: the sum over the groups. */
  get states(): StateCounts {
    const sum = new StateCounts();
    for (const group of this.groups) {
      for (const state of TASK_STATE_NAMES) sum.change(state, group.states[state]);
    }
    return sum;
  }

  get nbytesTotal(): number {
    let sum = 0;
    for (const group of this.groups) sum += group.nbytesTotal;
    return sum;
  }

  /** Bytes of all results ever computed: it never falls. */
  get nbytesProduced(): number {
    return this.nbytesTotal + this.nbytesGone;
  }

  /** A group has lost its last task. */
  drop(group: TaskGroup): void {
    if (this.groups.delete(group)) this.nbytesGone += group.nbytesTotal;
  }

  /**
   * The natural logarithm of a duration divided by what tasks of this prefix usually took before; undefined for the first.
   * @param paceLog - of the worker, which is taken off what is remembered
   */
  compare(seconds: number, paceLog: number): number | undefined {
    const log = Math.log(seconds);
    const usual = this.measured === 0 ? undefined : this.logSum / this.measured;
    this.measured++;
    this.logSum += log - paceLog;
    return usual === undefined ? undefined : log - usual;
  }

  /** The number of measured durations, and the sum of their logarithms. */
  get usual(): readonly number[] {
    return [this.measured, this.logSum];
  }
  set usual([measured = 0, logSum = 0]: readonly number[]) {
    this.measured = measured;
    this.logSum = logSum;
  }

  /** Average bytes of a result; 0 while no task was measured. */
  get nbytesAverage(): number {
    return this.sharing.averageBytes;
  }

  /** Undefined while no task was measured. */
  get known(): KnownPrefix | undefined {
    const { samples: count, averageS, averageBytes: nbytes, variance } = this.sharing;
    if (count === 0) return undefined;
    return { name: this.name, count, durationS: averageS, nbytes, spread: Math.sqrt(variance) };
  }

  /**
   * Expects what was known before, unless more was measured since. Only while no such task is processing. The pace of
   * workers is not measured by it: they may all be faster than those before.
   */
  recall({ count, durationS, nbytes, spread }: KnownPrefix): void {
    if (count <= this.sharing.samples) return;
    this.sharing.recall([count, durationS, nbytes, 0, spread * spread]);
    if (!this.costs.defaultTaskDurationsS.has(this.name)) this.durationAverageS = durationS;
    this.durationEstimateS = this.estimate();
  }

  /** The number of such tasks that count as one against the slots of a worker. */
  get tasksPerSlot(): number {
    const { isKnown, tasksPerSlot } = this.sharing;
    return isKnown ? tasksPerSlot : this.costs.firstOfName.tasksPerSlot;
  }

  /**
   * A task had such a duration and output. The first of a name also counts for names of which too few have ended.
   * @returns of which tasks another number counts as one slot now
   */
  learn(seconds: number, nbytes: number): 'these' | 'others, too' | 'none' {
    const before = this.tasksPerSlot;
    const isFirst = this.sharing.samples === 0;
    const isChanged = isFirst && this.costs.firstOfName.learn(seconds, nbytes);
    this.sharing.learn(seconds, nbytes);
    if (isChanged) return 'others, too';
    return this.tasksPerSlot === before ? 'none' : 'these';
  }

  /** A task computed for this long. Dask: the new value weighs one half. */
  addDuration(seconds: number): void {
    const duration = Math.max(0, seconds);
    this.durationAverageS =
      this.durationAverageS < 0 ? duration : 0.5 * duration + 0.5 * this.durationAverageS;
    this.durationEstimateS = this.estimate();
  }

  /**
   * A task has been running for this long and still is. An average that it exceeds twofold is
   * forgotten, because finished tasks alone would keep it too low for hours.
   */
  addExecTime(seconds: number): void {
    this.maxExecTimeS = Math.max(seconds, this.maxExecTimeS);
    if (seconds > 2 * this.durationAverageS) this.durationAverageS = -1;
    this.durationEstimateS = this.estimate();
  }

  /** Adds the counts of a prefix that is dropped, so that sums over all prefixes never fall. */
  absorb({ suspicious, computedS, transferredS, stateCounts, nbytesProduced }: TaskPrefix): void {
    this.suspicious += suspicious;
    this.computedS += computedS;
    this.transferredS += transferredS;
    this.nbytesGone += nbytesProduced;
    for (const state of TASK_STATE_NAMES) this.stateCounts.change(state, stateCounts[state]);
  }

  /** Reads anew what first tasks of other names take. Only while no such task is processing. */
  expect(): void {
    if (this.durationAverageS < 0) this.durationEstimateS = this.estimate();
  }

  private estimate(): number {
    if (this.durationAverageS >= 0) return this.durationAverageS;
    if (this.maxExecTimeS > 0) return 2 * this.maxExecTimeS;
    const { isKnown, averageS } = this.costs.firstOfName;
    return isKnown ? averageS : this.costs.unknownTaskDurationS;
  }
}

/** All tasks of one collection: the keys `('random-a1b2c3', i)` for every i. */
export class TaskGroup {
  [SHOWN]: object | 'group' = 'group';
  /** Tasks now in each state. */
  readonly states = new StateCounts();
  /** Tasks ever added, forgotten ones included; it never shrinks while the group lives. */
  size = 0;
  /** Groups of the dependencies of this group's tasks. Written by {@link addDependency} alone. */
  readonly dependencies = new Set<TaskGroup>();
  /** Sum of the known sizes of the results ever computed and not forgotten, in bytes. */
  nbytesTotal = 0;
  /** Earliest start and latest stop of a computation, in seconds of the scheduler's clock; 0 = none. */
  startS = 0;
  stopS = 0;
  /** Seconds of computation, summed over the tasks. */
  durationS = 0;
  /** Seconds spent by any other action (`transfer`, `disk-read`, …), summed over the tasks. */
  readonly otherDurationsS = new Map<string, number>();
  private readonly typeTally = new Tally<string>();
  /** The tasks of a group depend on one other group as a rule. */
  private latestDependency: TaskGroup | undefined = undefined;

  constructor(
    readonly name: string,
    readonly prefix: TaskPrefix,
  ) {
    prefix.groups.add(this);
  }

  /** The number of results of each type name. Builds a map. */
  get types(): ReadonlyMap<string, number> {
    return new Map(this.typeTally);
  }
  set types(counts: ReadonlyMap<string, number>) {
    this.typeTally.clear();
    for (const [type, count] of counts) this.typeTally.set(type, count);
  }

  /** True when no task of the group is on its way. */
  get done(): boolean {
    const { states } = this;
    return (
      states.waiting === 0 &&
      states['no-worker'] === 0 &&
      states.queued === 0 &&
      states.processing === 0
    );
  }

  /** A task of this group depends on one of that group. */
  addDependency(group: TaskGroup): void {
    if (group === this.latestDependency) return;
    this.latestDependency = group;
    this.dependencies.add(group);
  }

  /** There is a result of this type. */
  addType(type: string): void {
    this.typeTally.increment(type);
  }

  addTiming({ action, startS, stopS }: ActionTiming): void {
    const duration = Math.max(0, stopS - startS);
    if (action !== 'compute') {
      const { otherDurationsS } = this;
      otherDurationsS.set(action, (otherDurationsS.get(action) ?? 0) + duration);
      if (action === 'transfer') this.prefix.transferredS += duration;
      return;
    }
    this.durationS += duration;
    this.prefix.computedS += duration;
    if (this.stopS < stopS) this.stopS = stopS;
    if (this.startS === 0 || startS < this.startS) this.startS = startS;
  }
}

const SLOTS = 64;

/**
 * Groups of plain keys (`name-123`, `name-ab31c0…`) that were met lately, found without cutting the name out of the
 * key: a graph of a million tasks has a million keys and a handful of names.
 */
export class RecentGroups {
  private readonly slots: (TaskGroup | undefined)[] = [];

  /** The group of a plain key, or undefined when the key is not plain or the group not remembered. */
  find(key: string): TaskGroup | undefined {
    const dash = key.indexOf('-');
    const group = this.slots[slotOf(key, dash)];
    if (group?.name.length !== dash || !key.startsWith(group.name)) return undefined;
    return isNameEnd(key, dash) ? group : undefined;
  }

  remember(key: string, group: TaskGroup): void {
    const dash = key.indexOf('-');
    if (group.name.length === dash && isNameEnd(key, dash)) this.slots[slotOf(key, dash)] = group;
  }

  clear(): void {
    this.slots.length = 0;
  }
}

function slotOf(key: string, dash: number): number {
  return (key.charCodeAt(0) + 7 * key.charCodeAt(dash - 1) + dash) & (SLOTS - 1);
}

/** Tasks of one slot, by how short they are. Few steps, so that noise does not move them. */
const STEPS = [1, 4, 16, 64, 256] as const;
/** Finished tasks of a kind before anything is concluded from them. */
const SAMPLES_MIN = 8;
/** Names whose first task has ended before anything is concluded from it for others: more than most programs have. */
const NAMES_MIN = 64;
/** The step up to which first tasks alone lead. */
const FIRST_STEP_MAX = 2;
/** Weight of a new sample, at least. */
const WEIGHT = 1 / 8;
/** Results of the tasks in one slot are expected to stay below this, so that queuing keeps memory low. */
const SHARED_BYTES_MAX = 1024 * 1024;
/** A step is left downwards only when its limits are exceeded by this factor. */
const SLACK = 2;

/**
 * Learns what tasks of a kind take and give, and decides how many count as one against the slots of a worker. A slot
 * holds one task as long as nothing is known, or as long as tasks or results are not small. Where they are, the way to the
 * worker and back takes longer than the task, and a worker with one per slot would mostly wait.
 */
export class SlotSharing {
  samples = 0;
  averageS = 0;
  averageBytes = 0;
  /** Of the logarithm of the seconds, around that of the average. */
  variance = 0;
  private step = 0;

  /** @param slotWorkS - seconds of work for one slot; 0: one task for each */
  constructor(
    private readonly slotWorkS: number,
    private readonly samplesMin = SAMPLES_MIN,
    private readonly stepMax = STEPS.length - 1,
  ) {}

  /** The first tasks of all names: where each task has a name of its own, they are all that there is to learn from. */
  static ofFirstTasks(slotWorkS: number): SlotSharing {
    return new SlotSharing(slotWorkS, NAMES_MIN, FIRST_STEP_MAX);
  }

  /** True when something may be concluded: slots are shared, and enough have ended. */
  get isKnown(): boolean {
    return this.slotWorkS > 0 && this.samples >= this.samplesMin;
  }

  get tasksPerSlot(): number {
    return STEPS[this.step] as number;
  }

  /** Records the duration and the output of a task. Returns whether the answer has changed. */
  learn(seconds: number, nbytes: number): boolean {
    const weight = Math.max(1 / ++this.samples, WEIGHT);
    if (this.samples > 1) {
      const ratio = Math.max(seconds, COMPARED_S_MIN) / Math.max(this.averageS, COMPARED_S_MIN);
      this.variance +=
        Math.max(1 / (this.samples - 1), WEIGHT) * (Math.log(ratio) ** 2 - this.variance);
    }
    this.averageS += weight * (Math.max(0, seconds) - this.averageS);
    this.averageBytes += weight * (nbytes - this.averageBytes);
    if (!this.isKnown) return false;
    if (this.step > 0 && !this.fits(this.step, SLACK)) this.step--;
    else if (this.mayRise) this.step++;
    else return false;
    return true;
  }

  /** Begins with the figures of an earlier run, in the order of {@link learnt}. */
  recall(figures: readonly number[]): void {
    this.learnt = figures;
    if (!this.isKnown) return;
    while (this.mayRise) this.step++;
  }

  /** The learnt figures: samples, average seconds and bytes, step, variance. */
  get learnt(): readonly number[] {
    return [this.samples, this.averageS, this.averageBytes, this.step, this.variance];
  }
  set learnt([
    samples = 0,
    averageS = 0,
    averageBytes = 0,
    step = 0,
    variance = 0,
  ]: readonly number[]) {
    this.samples = samples;
    this.averageS = averageS;
    this.averageBytes = averageBytes;
    this.step = Math.min(step, this.stepMax);
    this.variance = variance;
  }

  private get mayRise(): boolean {
    return this.step < this.stepMax && this.fits(this.step + 1, 1);
  }

  private fits(step: number, slack: number): boolean {
    const tasks = STEPS[step] as number;
    const isShort = tasks * this.averageS <= slack * this.slotWorkS;
    return isShort && tasks * this.averageBytes <= slack * SHARED_BYTES_MAX;
  }
}
