import type { ClusterView } from '../../../core/api/index.ts';

/** Upper bound of the kills of a worker: a nanny replaces it this often, however early it dies. */
const KILLS_PER_WORKER_MAX = 10;
/** Parts of the work between which kills happen: workers have something to lose, and time to recover. */
const FROM = 0.02;
const TO = 0.95;
/** A Weyl sequence steps by this: 2^32 divided by the golden ratio. */
const STEP = 0x9e3779b9;

/** What to destroy, and when. */
interface ChaosOptions {
  readonly kills: number;
  /** The same seed gives the same moments, counted in tasks, and the same choices among workers. */
  readonly seed: number;
  readonly taskCount: number;
  /** Shares of the work after which it kills. Default: by the seed. */
  readonly moments?: readonly number[];
  readonly cluster: ClusterView;
  /** Called with what was killed. */
  readonly onKill: (worker: string, pid: number, done: number) => void;
}

/** Kills worker processes while a graph is computed, as a crash of the machine would. */
export class Chaos {
  private readonly random: () => number;
  /** Numbers of finished tasks at which a worker is killed, in descending order. */
  private readonly moments: number[];
  private readonly deaths = new Map<string, number>();
  /** A process that was just killed may be known for a moment longer. */
  private readonly killed = new Set<number>();

  constructor(private readonly options: ChaosOptions) {
    const { seed, kills, taskCount, moments } = options;
    this.random = randomFrom(seed);
    this.moments = (moments ?? momentsOf(kills, this.random))
      .map((share) => Math.ceil(taskCount * share))
      .sort((a, b) => b - a);
  }

  /** How many it has killed so far. */
  get killCount(): number {
    return this.killed.size;
  }

  /**
   * Called when `done` tasks are finished. Kills at most one worker; without a candidate it tries
   * again at the next call.
   */
  onProgress(done: number): void {
    const moment = this.moments.at(-1);
    if (moment === undefined || done < moment) return;
    const victims = [...this.options.cluster.workers.values()].filter(({ name, identity }) => {
      const isDead = this.killed.has(identity.pid ?? 0);
      return !isDead && (this.deaths.get(name) ?? 0) < KILLS_PER_WORKER_MAX;
    });
    const victim = victims[Math.floor(this.random() * victims.length)];
    const pid = victim?.identity.pid;
    if (victim === undefined || pid === undefined || !kill(pid)) return;
    this.moments.pop();
    this.killed.add(pid);
    this.deaths.set(victim.name, (this.deaths.get(victim.name) ?? 0) + 1);
    this.options.onKill(victim.name, pid, done);
  }
}

/** False: it is gone already, and the scheduler does not know yet. */
function kill(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL');
  } catch {
    return false;
  }
}

/** Shares of the work after which something is killed. */
export function momentsOf(kills: number, random: () => number): number[] {
  return Array.from({ length: kills }, () => FROM + (TO - FROM) * random());
}

/** Numbers from 0 to 1, the same for each seed: a Weyl sequence whose bits are mixed. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + STEP) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
}
