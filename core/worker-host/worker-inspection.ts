import { named, YardmasterError } from '../api/errors.ts';
import type { Executor } from '../api/executor.ts';
import type { WireMessage } from '../api/transport.ts';
import { versionsHere } from '../host/handshakes.ts';
import { LogBook } from '../host/log.ts';
import type { InspectReply } from '../messages/protocol.ts';
import { checkedResult, executorName } from '../plugin-host/contracts.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { WorkerKernel } from '../worker/worker-kernel.ts';
import type { WorkerTask } from '../worker/worker-task.ts';
import { answerActorCall } from './data-server.ts';
import { EXECUTOR } from './tokens.ts';
import { WorkerActivities } from './worker-activities.ts';
import { WorkerDescription } from './worker-description.ts';
import { WorkerServing } from './worker-serving.ts';

/** Answers what the scheduler asks of a worker. */
@collaborator
export class WorkerInspection {
  /** Ends what was begun here and is not over. */
  private readonly ending = new AbortController();

  constructor(
    private readonly kernel: WorkerKernel,
    @inject(EXECUTOR) private readonly executor: Executor,
    private readonly logBook: LogBook,
    private readonly description: WorkerDescription,
    private readonly serving: WorkerServing,
    private readonly activities: WorkerActivities,
  ) {}

  /** @throws YardmasterError `ERR_PROTOCOL` for anything but `inspect`, `run` and `actor-call` */
  answer(method: string, parameters: WireMessage): InspectReply | Promise<InspectReply> {
    if (method === 'inspect') return this.inspect(parameters);
    if (method === 'run') return this.run(parameters);
    if (method === 'actor-call') return answerActorCall(this.executor, parameters);
    throw new YardmasterError('ERR_PROTOCOL', `a worker answers "${method}" to peers only`);
  }

  close(): void {
    this.ending.abort();
  }

  private inspect({ what, count, keys }: WireMessage): InspectReply | Promise<InspectReply> {
    switch (what) {
      case 'versions':
        return versionsHere();
      case 'logs':
        return { lines: this.logBook.lines(typeof count === 'number' ? count : undefined) };
      case 'identity':
        return this.description.describe();
      case 'connections':
        return this.serving.connections();
      case 'call-stacks':
        return this.callStacks(Array.isArray(keys) ? (keys as readonly unknown[]) : undefined);
      case 'profile':
        return this.profile();
      case 'state':
        return {
          ...this.description.describe(),
          ...versionsHere(),
          tasks: [...this.kernel.tables.tasks.values()].map(describeWorkerTask),
          story: this.kernel.story(),
          logs: this.logBook.lines(),
        };
      default:
        throw new YardmasterError(
          'ERR_PROTOCOL',
          `a worker can be inspected for versions, logs, identity, connections, call-stacks, profile or state, not for ${String(what)}`,
          { what },
        );
    }
  }

  /** Of the tasks that run, cancelled ones included. */
  private async callStacks(keys: readonly unknown[] | undefined): Promise<InspectReply> {
    const { executor, kernel } = this;
    const failed = `${executorName(executor)} threw in callStacks`;
    const stacks = await named(failed, 'ERR_EXECUTOR', () => executor.callStacks?.());
    const running = this.activities.executing().filter(([key]) => keys?.includes(key) ?? true);
    const { tables } = kernel;
    return {
      running: running.map(([key, seconds]) => {
        const task = tables.tasks.get(key);
        const hasSeceded = task !== undefined && tables.seceded.has(task);
        const unseen = stacks === undefined ? 'the executor cannot look into it' : undefined;
        const stack = stacks?.get(key) ?? {
          frames: [],
          unseen,
        };
        return { key, seconds, hasSeceded, isCancelled: task?.state !== 'executing', ...stack };
      }),
    };
  }

  private async profile(): Promise<InspectReply> {
    const { executor } = this;
    const failed = `${executorName(executor)} threw in profile`;
    const profile = await named(failed, 'ERR_EXECUTOR', () => executor.profile?.());
    return { profile: profile ?? null };
  }

  private async run({ key, runSpec, place }: WireMessage): Promise<InspectReply> {
    const { executor } = this;
    if (executor.runAside === undefined) {
      const message = `${executorName(executor)} has no method runAside, so it runs nothing but tasks; add one`;
      throw new YardmasterError('ERR_EXECUTOR', message);
    }
    const isCall = typeof key === 'string' && (place === 'worker' || place === 'threads');
    if (!isCall) throw new YardmasterError('ERR_PROTOCOL', 'a run without key or place');
    const task = { key, runSpec, inputs: new Map<string, Uint8Array>() };
    const aside = executor.runAside(task, place, this.ending.signal);
    const failed = `${executorName(executor)} did not answer runAside with a list of results`;
    const results = await named(failed, 'ERR_EXECUTOR', async () => [...(await aside)]);
    return {
      results: results.map((answer) => {
        const result = checkedResult(executor, answer, 'a function that is no task');
        if (result.kind === 'success') return { value: result.value };
        if (result.kind === 'failure') return { error: result.error };
        const message = 'a function that is no task cannot be placed anew';
        return { error: { name: 'YardmasterError', code: 'ERR_TASK', message } };
      }),
    };
  }
}

/** A task as its worker sees it, as plain data. */
function describeWorkerTask(task: WorkerTask): Readonly<Record<string, unknown>> {
  return {
    key: task.key,
    state: task.state,
    previous: task.previous,
    next: task.next,
    runId: task.runId,
    priority: task.priority,
    dependencies: [...task.dependencies].map(keyOf),
    waitingForData: [...task.waitingForData].map(keyOf),
    holders: [...task.holders],
    comingFrom: task.comingFrom,
    nbytes: task.nbytes,
    type: task.type,
    exception: task.failure?.exceptionText,
  };
}

function keyOf({ key }: { readonly key: string }): string {
  return key;
}
