import type { Clock } from '../../api/clock.ts';
import { TurnBudget } from '../../shared/turn-budget.ts';
import type { UpdateGraph } from '../../messages/stimulus.ts';
import type { IncomingStimulus } from '../stimulus-queue.ts';

/** A graph with more tasks is submitted in slices of this many. */
const SLICE_TASKS = 1000;
/** More keys than this are released by and by. */
const SLICE_KEYS = 1000;
/** Small stimuli of one client that are handled without a pause. */
const BURST = 100;

/** After these a key may be submitted with another meaning: it has to be forgotten by then. */
const GIVING_UP: ReadonlySet<string> = new Set([
  'client-releases-keys',
  'cancel-keys',
  'remove-client',
]);

/** What the lines need of their scheduler. */
export interface ClientQueuesHost {
  readonly clock: Clock;
  /** Handles a stimulus, at once unless another one is being handled. */
  handle(stimulus: IncomingStimulus): void;
  /** A name that no stimulus has had: `task-finished-17`. */
  nextStimulusId(op: string): string;
  /** Id of the stimulus whose graph continues with the next slice. */
  intake(): string | undefined;
  /** Whether the graph of that stimulus is not submitted completely yet. */
  isTakingIn(stimulusId: string): boolean;
  /** Whether stimuli have left work to `continue-settling`. */
  isUnsettled(): boolean;
  /** Keys that a client wants. */
  wantedBy(client: string): Iterable<string>;
  /** How many they are. */
  wantedCount(client: string): number;
}

/**
 * What keeps the scheduler busy for long is done a slice at a time, and others have their turn in between:
 * large graphs, the release of very many keys, the leaving of a client that wants them, and what any
 * stimulus has left to later ones. What the same client says after that waits in its line, so that
 * everything takes effect in the order in which it was said.
 */
export class ClientQueues {
  /** By client; the oldest line moves, the others wait. */
  private readonly clientQueues = new Map<string, Line>();
  private isScheduled = false;

  constructor(private readonly host: ClientQueuesHost) {}

  /** Whether the stimulus has to wait for its turn; otherwise the caller handles it. */
  takes(stimulus: IncomingStimulus): boolean {
    if (!('client' in stimulus)) return false;
    const { client } = stimulus;
    if (stimulus.op === 'remove-client') this.end(client);
    let line = this.clientQueues.get(client);
    if (line === undefined) {
      if (!this.isLong(stimulus)) return false;
      line = new Line();
      this.clientQueues.set(client, line);
    }
    line.stimuli.push(...this.cut(stimulus));
    this.schedule();
    return true;
  }

  /** The stimulus has been handled, and may have left work to be continued with. */
  handled(stimulus: IncomingStimulus): void {
    if (!this.host.isUnsettled()) return;
    if (GIVING_UP.has(stimulus.op) && 'client' in stimulus) {
      const line = this.clientQueues.get(stimulus.client) ?? new Line();
      line.isLettingGo = true;
      this.clientQueues.set(stimulus.client, line);
    }
    this.schedule();
  }

  /** When all that the client has said has been handled; undefined: it has been. */
  settled(client: string): Promise<void> | undefined {
    const line = this.clientQueues.get(client);
    return line && new Promise((resolve) => line.waiters.push(resolve));
  }

  /** Nothing moves any more. */
  clear(): void {
    for (const client of [...this.clientQueues.keys()]) this.end(client);
  }

  private isLong(stimulus: IncomingStimulus): boolean {
    const { op } = stimulus;
    if (op === 'update-graph') return isLarge(stimulus);
    if (op === 'client-releases-keys') return stimulus.keys.length > SLICE_KEYS;
    return op === 'remove-client' && this.host.wantedCount(stimulus.client) > SLICE_KEYS;
  }

  /** The same as several stimuli of the same id. */
  private *cut(stimulus: IncomingStimulus): Iterable<IncomingStimulus> {
    const { op, stimulusId } = stimulus;
    if (op === 'client-releases-keys') {
      yield* this.releases(stimulus.client, stimulus.keys, stimulusId);
      return;
    }
    if (op === 'remove-client' && this.isLong(stimulus)) {
      const keys = [...this.host.wantedBy(stimulus.client)];
      yield* this.releases(stimulus.client, keys, stimulusId);
    }
    yield stimulus;
  }

  private *releases(
    client: string,
    keys: readonly string[],
    id: string | undefined,
  ): Iterable<IncomingStimulus> {
    const op = 'client-releases-keys';
    const stimulusId = id ?? this.host.nextStimulusId(op);
    for (let from = 0; from < keys.length; from += SLICE_KEYS) {
      yield { op, client, keys: keys.slice(from, from + SLICE_KEYS), stimulusId };
    }
  }

  private schedule(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    TurnBudget.of(this.host.clock).later(() => {
      this.isScheduled = false;
      this.move();
    });
  }

  private move(): void {
    const { host } = this;
    if (host.isUnsettled()) host.handle({ op: 'continue-settling' });
    const [first] = this.clientQueues;
    if (first !== undefined) {
      const [client, line] = first;
      line.isLettingGo &&= host.isUnsettled();
      if (!line.isLettingGo) this.step(line);
      // Whatever was handled may have ended it.
      if (line.isOver && this.clientQueues.get(client) === line) this.end(client);
    }
    if (this.clientQueues.size > 0 || host.isUnsettled()) this.schedule();
  }

  /** Not more than one slice of anything. */
  private step(line: Line): void {
    const { host } = this;
    if (line.graph !== undefined) {
      const stimulusId = host.intake();
      if (stimulusId !== undefined) host.handle({ op: 'continue-graph', stimulusId });
      if (!host.isTakingIn(line.graph)) line.graph = undefined;
      return;
    }
    for (let count = 0; count < BURST; count++) {
      const stimulus = line.next();
      if (stimulus === undefined) return;
      if (stimulus.op === 'update-graph' && isLarge(stimulus)) {
        line.graph = this.begin(stimulus);
        return;
      }
      host.handle(stimulus);
      if (stimulus.op === 'client-releases-keys') return;
    }
  }

  /** Returns the id of the stimulus. */
  private begin(graph: IncomingStimulus & Omit<UpdateGraph, 'stimulusId'>): string {
    const { stimulusId = '' } = graph;
    const id = stimulusId === '' ? this.host.nextStimulusId(graph.op) : stimulusId;
    this.host.handle({ ...graph, stimulusId: id, sliceTasks: SLICE_TASKS });
    return id;
  }

  private end(client: string): void {
    const line = this.clientQueues.get(client);
    this.clientQueues.delete(client);
    for (const resolve of line?.waiters ?? []) resolve();
  }
}

/** What one client has said and has not been handled. */
class Line {
  readonly stimuli: IncomingStimulus[] = [];
  readonly waiters: (() => void)[] = [];
  /** Stimulus of the graph that is being submitted. */
  graph: string | undefined;
  /** Whether tasks that the client gave up have not been released yet. */
  isLettingGo = false;
  private handled = 0;

  get isOver(): boolean {
    return this.graph === undefined && !this.isLettingGo && this.handled === this.stimuli.length;
  }

  next(): IncomingStimulus | undefined {
    return this.handled === this.stimuli.length ? undefined : this.stimuli[this.handled++];
  }
}

/**
 * Slices are decided only here: the kernel relies on this class for the stimuli that continue a
 * graph.
 */
function isLarge({ tasks, sliceTasks }: Pick<UpdateGraph, 'tasks' | 'sliceTasks'>): boolean {
  return tasks.length > SLICE_TASKS || sliceTasks !== undefined;
}
