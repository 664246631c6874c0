/** What one seed does to the whole program. Each seed leaves most kinds of trouble out (a swarm). */
import type { Durability } from '../../../adapters/app/write-log.ts';
import { Dice } from '../dice.ts';
import type { Reduction } from '../reduction.ts';
import { type Schedule, SCHEDULES } from './delivery.ts';

/** Within this time of virtual milliseconds things happen. */
export const HORIZON_MS = 3000;

/** Trouble that any cluster may have. */
const NETWORK_TROUBLE = ['cut', 'stall', 'kill', 'join', 'swap', 'cancel'] as const;
/** Trouble of a scheduler with a journal: it is killed, its machine loses its power, its disk is full or fails. */
const JOURNAL_TROUBLE = ['restart', 'restart', 'power', 'full-disk', 'failing-disk'] as const;
/** Trouble of workers that spill. */
const SPILL_TROUBLE = ['full-spill', 'unreadable-spill', 'damaged-spill'] as const;

export type Trouble =
  | (typeof NETWORK_TROUBLE)[number]
  | (typeof JOURNAL_TROUBLE)[number]
  | (typeof SPILL_TROUBLE)[number];

/** What clients ask for besides results, of tasks that they have submitted. */
const DEMANDS = ['prioritise', 'release', 'cancel', 'commit'] as const;
export type Demand = (typeof DEMANDS)[number];

/** How the scheduler keeps its journal. */
export interface JournalPlan {
  readonly durability: Durability;
  readonly onJournalError: 'stop' | 'continue';
  readonly segmentBytes: number;
}

/** One thing that happens. What it is exactly is drawn when it does, from dice of its own. */
export interface PlannedEvent {
  readonly atMs: number;
  readonly what: 'submit' | Demand | Trouble;
  readonly dice: Dice;
}

export interface StackPlan {
  readonly delayMs: number;
  readonly schedule: Schedule;
  readonly workers: number;
  readonly clients: number;
  readonly journal: JournalPlan | undefined;
  /** Undefined: without limit. */
  readonly memoryLimitBytes: number | undefined;
  readonly managesMemory: boolean;
  /** In the order of their time. */
  readonly events: readonly PlannedEvent[];
  /** Events before any was left out. */
  readonly eventCount: number;
  readonly tasksMax: number;
  /** For people. */
  readonly kinds: readonly string[];
}

export function planOf(seed: number, reduction: Reduction = {}): StackPlan {
  const dice = new Dice(seed, 'stack');
  const { workersMax = Infinity, tasksMax = Infinity, without } = reduction;
  const journal = dice.chance(0.6) ? journalOf(new Dice(seed, 'journal')) : undefined;
  const memoryLimitBytes = dice.chance(0.35) ? dice.oneOf([10_000, 40_000]) : undefined;
  // From quiet seeds, in which little happens twice, to wild ones.
  const density = dice.oneOf([0.15, 0.5, 0.5, 0.8]);
  const kinds: Trouble[] = dice.some(NETWORK_TROUBLE, density);
  if (journal !== undefined) kinds.push(...journalTrouble(new Dice(seed, 'trouble'), journal));
  if (memoryLimitBytes !== undefined) kinds.push(...new Dice(seed, 'spill').some(SPILL_TROUBLE));
  const all = Array.from({ length: dice.between(4, 12) }, (_, number) =>
    eventOf(new Dice(seed, `event-${number}`), kinds, journal !== undefined),
  );
  const more = new Dice(seed, 'demands');
  for (let count = more.chance(0.6) ? more.between(1, 8) : 0; count > 0; count--) {
    const atMs = more.between(0, HORIZON_MS);
    const what = more.oneOf(DEMANDS);
    if (what === 'commit' && journal === undefined) continue;
    all.push({ atMs, what, dice: new Dice(seed, `demand-${count}`) });
  }
  return {
    delayMs: dice.oneOf([0.1, 1, 20]),
    schedule: dice.oneOf(SCHEDULES),
    workers: Math.min(workersMax, dice.between(1, 4)),
    clients: dice.between(1, 2),
    journal,
    memoryLimitBytes,
    managesMemory: dice.chance(0.3),
    events: all
      .filter((_, number) => without?.has(number) !== true)
      .sort((one, other) => one.atMs - other.atMs),
    eventCount: all.length,
    tasksMax,
    kinds,
  };
}

function eventOf(dice: Dice, kinds: readonly Trouble[], hasJournal: boolean): PlannedEvent {
  const atMs = dice.between(0, HORIZON_MS);
  const luck = dice.next();
  if (luck < 0.3 || kinds.length === 0) return { atMs, what: 'submit', dice };
  if (luck < 0.4 && hasJournal) return { atMs, what: 'commit', dice };
  return { atMs, what: dice.oneOf(kinds), dice };
}

function journalOf(dice: Dice): JournalPlan {
  return {
    durability: dice.oneOf(['commit', 'commit', { intervalMs: 50 }, 'none']),
    onJournalError: dice.chance(0.75) ? 'stop' : 'continue',
    segmentBytes: dice.oneOf([500, 5000, 2 ** 26]),
  };
}

/** Only `commit` promises anything about a loss of power. */
function journalTrouble(dice: Dice, { durability, onJournalError }: JournalPlan): Trouble[] {
  const kinds = dice.some(JOURNAL_TROUBLE);
  return kinds.filter((kind) => {
    if (kind === 'power') return durability === 'commit' && onJournalError === 'stop';
    return true;
  });
}
