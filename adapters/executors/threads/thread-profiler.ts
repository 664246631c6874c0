import type { InspectorNotification, Profiler, Session } from 'node:inspector';
import { type CallTree, prefixOfKey, type TaskProfile } from '../../../core/api/index.ts';
import { epochMs } from '../../clocks/system-clock.ts';
import type { TaskThread } from './task-thread.ts';
import { isOfTask } from './thread-run.ts';

/** Between two samples of a thread. */
const INTERVAL_MS = 20;
/** Without a reader for so long, nothing is sampled any more. */
const LEASE_MS = 30_000;
/** Threads answer within this, or with the next reading. */
const ANSWER_MS = 2000;
/** Calls that are told apart; further ones count for their callers. */
const NODES_MAX = 20_000;

/** Calls of one function by its callers, as they are counted. */
class Calls {
  count = 0;
  readonly byFrame = new Map<string, Calls>();

  constructor(
    private readonly name: string,
    private readonly url = '',
    private readonly line = 0,
  ) {}

  toTree(): CallTree {
    const { name, url, line, count } = this;
    return {
      name,
      url,
      line,
      count,
      children: Array.from(this.byFrame.values(), (one) => one.toTree()),
    };
  }
}

/** A thread with its session of the inspector. */
interface Attached {
  readonly thread: TaskThread;
  /** Of the profile that it takes at present. */
  title: string;
}

/**
 * Samples the call stacks of threads while they run tasks, by V8's profiler, which also sees a task that never gives
 * way. It runs while somebody reads what was seen, and half a minute longer.
 *
 * A thread begins its next profile before it ends the present one, which takes the functions of V8's console: a
 * profiler that starts anew does not know the machine code of a loop that runs already, and leaves its function out.
 */
export class ThreadProfiler {
  private session: Session | undefined;
  /** By the id of the session. */
  private readonly attached = new Map<string, Attached>();
  /** The readers that wait for a profile, by its title. */
  private readonly asked = new Map<string, (profile: Profiler.Profile | undefined) => void>();
  private readonly prefixes = new Map<string, Calls>();
  private nodes = 0;
  private nextId = 0;
  private sinceMs = 0;
  private timer: NodeJS.Timeout | undefined;
  private reading: Promise<TaskProfile> | undefined;

  constructor(private readonly threads: ReadonlySet<TaskThread>) {}

  /**
   * All that was seen since the first reading. Readers at the same time get the same.
   * @throws Error when Node's inspector cannot be used
   */
  read(): Promise<TaskProfile> {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.stop(), LEASE_MS).unref();
    this.reading ??= this.collect().finally(() => (this.reading = undefined));
    return this.reading;
  }

  stop(): void {
    clearTimeout(this.timer);
    this.session?.disconnect(); // Ends the profilers of all threads.
    this.session = undefined;
    for (const { thread } of this.attached.values()) thread.ranTasks = undefined;
    for (const answer of this.asked.values()) answer(undefined);
    this.attached.clear();
    this.asked.clear();
    this.prefixes.clear();
    this.nodes = 0;
  }

  private async collect(): Promise<TaskProfile> {
    if (this.session === undefined) await this.start();
    await Promise.all([...this.attached].map((entry) => this.collectFrom(...entry)));
    const trees = [...this.prefixes].map(([prefix, tree]) => [prefix, tree.toTree()] as const);
    return { intervalMs: INTERVAL_MS, sinceMs: this.sinceMs, prefixes: Object.fromEntries(trees) };
  }

  private async start(): Promise<void> {
    const { Session: Inspector } = await import('node:inspector');
    const session = new Inspector();
    session.connect();
    this.session = session;
    this.sinceMs = epochMs();
    session.on('NodeWorker.attachedToWorker', ({ params: { sessionId, workerInfo } }) => {
      const id = Number(/^\[worker (\d+)\]/.exec(workerInfo.title)?.[1]);
      const thread = [...this.threads].find(({ threadId }) => threadId === id);
      if (thread === undefined) return;
      const title = `${++this.nextId}`;
      this.attached.set(sessionId, { thread, title });
      thread.ranTasks = [];
      this.send(sessionId, 'Profiler.enable');
      this.send(sessionId, 'Profiler.setSamplingInterval', { interval: 1000 * INTERVAL_MS });
      this.evaluate(sessionId, `profile('${title}')`);
    });
    session.on('NodeWorker.detachedFromWorker', ({ params: { sessionId } }) => {
      this.attached.delete(sessionId);
    });
    session.on('NodeWorker.receivedMessageFromWorker', ({ params: { message } }) => {
      const { method, params } = JSON.parse(message) as InspectorNotification<
        Partial<Profiler.ConsoleProfileFinishedEventDataType>
      >;
      if (method !== 'Profiler.consoleProfileFinished') return;
      const { title = '', profile } = params;
      this.asked.get(title)?.(profile);
      this.asked.delete(title);
    });
    session.post('NodeWorker.enable', { waitForDebuggerOnStart: false });
  }

  /** Takes what a thread has seen, and lets it go on. */
  private collectFrom(sessionId: string, attached: Attached): Promise<void> {
    const { thread, title } = attached;
    const next = `${++this.nextId}`;
    attached.title = next;
    return new Promise<void>((resolve) => {
      // Also an answer that comes too late for this reading counts.
      this.asked.set(title, (profile) => {
        if (profile !== undefined && thread.ranTasks !== undefined) this.add(profile, thread);
        resolve();
      });
      setTimeout(resolve, ANSWER_MS).unref();
      this.evaluate(sessionId, `profile('${next}'); profileEnd('${title}')`);
    });
  }

  private evaluate(sessionId: string, expression: string): void {
    this.send(sessionId, 'Runtime.evaluate', { expression, includeCommandLineAPI: true });
  }

  private send(sessionId: string, method: string, params: object = {}): void {
    const message = JSON.stringify({ id: ++this.nextId, method, params });
    // A thread that has ended meanwhile answers nothing.
    this.session?.post('NodeWorker.sendMessageToWorker', { sessionId, message }, () => undefined);
  }

  /** O(samples · depth). */
  private add(
    { nodes, samples = [], timeDeltas = [], startTime }: Profiler.Profile,
    thread: TaskThread,
  ): void {
    const ran = thread.ranTasks ?? [];
    const [present] = thread.running;
    thread.ranTasks = [];
    const frames = new Map(nodes.map((node) => [node.id, node.callFrame]));
    const callers = new Map(
      nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])),
    );
    const stacks = new Map<number, readonly Profiler.ProfileNode['callFrame'][]>();
    const stackOf = (leaf: number): readonly Profiler.ProfileNode['callFrame'][] => {
      let found = stacks.get(leaf);
      if (found !== undefined) return found;
      const calls = [];
      for (let id: number | undefined = leaf; id !== undefined; id = callers.get(id)) {
        const frame = frames.get(id);
        if (frame !== undefined) calls.push(frame);
      }
      calls.reverse();
      const first = calls.findIndex(({ url }) => isOfTask(url));
      found = first < 0 ? calls.slice(-1) : calls.slice(first);
      stacks.set(leaf, found);
      return found;
    };
    // The profiler counts microseconds of the clock of `hrtime`.
    const offsetMs = epochMs() - Number(process.hrtime.bigint()) / 1e6;
    let atMs = startTime / 1000 + offsetMs;
    let next = 0;
    samples.forEach((leaf, k) => {
      atMs += (timeDeltas[k] ?? 0) / 1000;
      if (frames.get(leaf)?.functionName === '(idle)') return;
      while (next < ran.length && (ran[next]?.stopMs ?? 0) < atMs) next++;
      const run = ran[next];
      const key = run === undefined ? present?.key : run.startMs <= atMs ? run.key : undefined;
      if (key !== undefined) this.count(prefixOfKey(key), stackOf(leaf));
    });
  }

  private count(prefix: string, stack: readonly Profiler.ProfileNode['callFrame'][]): void {
    let node = this.prefixes.get(prefix);
    if (node === undefined) this.prefixes.set(prefix, (node = new Calls(prefix)));
    node.count++;
    for (const { functionName, url, lineNumber } of stack) {
      const frame = `${functionName} ${url} ${lineNumber}`;
      let callee: Calls | undefined = node.byFrame.get(frame);
      if (callee === undefined) {
        if (this.nodes >= NODES_MAX) return;
        this.nodes++;
        callee = new Calls(functionName || '(anonymous)', url, lineNumber + 1);
        node.byFrame.set(frame, callee);
      }
      callee.count++;
      node = callee;
    }
  }
}
