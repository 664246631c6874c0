import type { Clock } from '../api/clock.ts';
import { SchedulerKernel } from '../kernel/kernel.ts';
import { sliceId } from '../log/log-writer.ts';
import { OPERATIONS } from '../messages/operations.ts';
import type { UpdateGraph } from '../messages/stimulus.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { CLOCK } from '../host/tokens.ts';
import { TurnBudget } from '../shared/turn.ts';
import type { TaskState } from '../state/task.ts';
import { StimulusQueue } from './stimulus-queue.ts';
import { type IncomingStimulus, type Stimuli } from './tokens.ts';

/** A graph with more tasks is submitted in slices of this many. */
const SLICE_TASKS = 1000;
/** More keys than this are wanted, or released, by and by. */
const SLICE_KEYS = 1000;
/** Small stimuli of one client that are handled without a pause. */
const BURST = 100;

/** Many keys in one of these are the same as a few in several, one after the other. */
type KeysStimulus = Extract<
  IncomingStimulus,
  { readonly op: 'client-releases-keys' | 'client-desires-keys' }
>;

/**
 * Long work is done a slice at a time, and others have their turn in between:
 * large graphs, the demand for and the release of very many keys, the leaving of a client that wants them, and what any
 * stimulus has left to later ones. What the same client says after that waits in its line, so that
 * everything takes effect in the order in which it was said.
 */
@collaborator
export class ClientQueues implements Stimuli {
  /** By client; the oldest line moves, the others wait. */
  private readonly clientQueues = new Map<string, Line>();
  private isScheduled = false;

  constructor(
    @inject(CLOCK) private readonly clock: Clock,
    private readonly queue: StimulusQueue,
    private readonly kernel: SchedulerKernel,
  ) {}

  accept(stimulus: IncomingStimulus): void {
    if (!this.queue.isStopped && !this.takes(stimulus)) this.queue.put(stimulus);
  }

  /** True when the stimulus waits for its turn. */
  private takes(stimulus: IncomingStimulus): boolean {
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

  /** The stimulus has been handled, and has left work that later turns continue. */
  continueLater(stimulus: IncomingStimulus): void {
    if (this.queue.isStopped) return;
    if (OPERATIONS[stimulus.op].holdsBackSender && 'client' in stimulus) {
      const line = this.clientQueues.get(stimulus.client) ?? new Line();
      line.isCompleting = true;
      this.clientQueues.set(stimulus.client, line);
    }
    this.schedule();
  }

  /** Resolves when all messages of the client have been handled; undefined: they have been. */
  settled(client: string): Promise<void> | undefined {
    const line = this.clientQueues.get(client);
    return line && new Promise((resolve) => line.waiters.push(resolve));
  }

  /** Nothing moves any more. */
  clear(): void {
    for (const client of [...this.clientQueues.keys()]) this.end(client);
  }

  private get isUnsettled(): boolean {
    return !this.queue.isStopped && this.kernel.isUnsettled;
  }

  private wantedBy(client: string): ReadonlySet<TaskState> {
    return this.kernel.cluster.clients.get(client)?.wantsWhat ?? new Set();
  }

  private isLong(stimulus: IncomingStimulus): boolean {
    const { op } = stimulus;
    if (op === 'update-graph') return isLarge(stimulus);
    if (isOfKeys(stimulus)) return stimulus.keys.length > SLICE_KEYS;
    return op === 'remove-client' && this.wantedBy(stimulus.client).size > SLICE_KEYS;
  }

  /** The same as several stimuli, of which the last has its id. */
  private *cut(stimulus: IncomingStimulus): Iterable<IncomingStimulus> {
    if (isOfKeys(stimulus) && this.isLong(stimulus)) {
      yield* this.inSlices(stimulus);
      return;
    }
    const { op, stimulusId } = stimulus;
    if (op === 'remove-client' && this.isLong(stimulus)) {
      const { client } = stimulus;
      const keys = Array.from(this.wantedBy(client), ({ key }) => key);
      const id = stimulusId === undefined ? {} : { stimulusId };
      yield* this.inSlices({ op: 'client-releases-keys', client, keys, ...id });
    }
    yield stimulus;
  }

  private *inSlices(stimulus: KeysStimulus): Iterable<IncomingStimulus> {
    const { op, keys, stimulusId = this.queue.nextId(op) } = stimulus;
    const last = Math.ceil(keys.length / SLICE_KEYS) - 1;
    for (let index = 0; index <= last; index++) {
      const slice = keys.slice(index * SLICE_KEYS, (index + 1) * SLICE_KEYS);
      const id = index === last ? stimulusId : sliceId(stimulusId, index);
      yield { ...stimulus, keys: slice, stimulusId: id };
    }
  }

  private schedule(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    TurnBudget.of(this.clock).later(() => {
      this.isScheduled = false;
      this.move();
    });
  }

  private move(): void {
    if (this.isUnsettled) this.queue.put({ op: 'continue-settling' });
    const [first] = this.clientQueues;
    if (first !== undefined) {
      const [client, line] = first;
      line.isCompleting &&= this.isUnsettled;
      if (!line.isCompleting) this.step(line);
      // Whatever was handled may have ended it.
      if (line.isOver && this.clientQueues.get(client) === line) this.end(client);
    }
    if (this.clientQueues.size > 0 || this.isUnsettled) this.schedule();
  }

  /** Not more than one slice of anything. */
  private step(line: Line): void {
    const { kernel, queue } = this;
    if (line.graph !== undefined) {
      const stimulusId = kernel.intake?.stimulusId;
      if (stimulusId !== undefined) queue.put({ op: 'continue-graph', stimulusId });
      if (!kernel.isTakingIn(line.graph)) line.graph = undefined;
      return;
    }
    for (let count = 0; count < BURST; count++) {
      const stimulus = line.next();
      if (stimulus === undefined) return;
      if (stimulus.op === 'update-graph' && isLarge(stimulus)) {
        line.graph = this.begin(stimulus);
        return;
      }
      queue.put(stimulus);
      if (isOfKeys(stimulus)) return;
    }
  }

  /** Returns the id of the stimulus. */
  private begin(graph: IncomingStimulus & Omit<UpdateGraph, 'stimulusId'>): string {
    const { stimulusId = '' } = graph;
    const id = stimulusId === '' ? this.queue.nextId(graph.op) : stimulusId;
    this.queue.put({ ...graph, stimulusId: id, sliceTasks: SLICE_TASKS });
    return id;
  }

  private end(client: string): void {
    const line = this.clientQueues.get(client);
    this.clientQueues.delete(client);
    for (const resolve of line?.waiters ?? []) resolve();
  }
}

/** The messages of one client that have not been handled. */
class Line {
  readonly stimuli: IncomingStimulus[] = [];
  readonly waiters: (() => void)[] = [];
  /** Stimulus of the graph that is being submitted. */
  graph: string | undefined;
  /** True when something that the client said is not done yet, and has to be before what it said next. */
  isCompleting = false;
  private handled = 0;

  get isOver(): boolean {
    return this.graph === undefined && !this.isCompleting && this.handled === this.stimuli.length;
  }

  next(): IncomingStimulus | undefined {
    return this.handled === this.stimuli.length ? undefined : this.stimuli[this.handled++];
  }
}

function isOfKeys(stimulus: IncomingStimulus): stimulus is KeysStimulus {
  return stimulus.op === 'client-releases-keys' || stimulus.op === 'client-desires-keys';
}

/**
 * Slices are decided only here: the kernel relies on this class for the stimuli that continue a
 * graph.
 */
function isLarge({ tasks, sliceTasks }: Pick<UpdateGraph, 'tasks' | 'sliceTasks'>): boolean {
  return tasks.length > SLICE_TASKS || sliceTasks !== undefined;
}
