import {
  type ActorCall,
  type ExecutableTask,
  type ExecutionResult,
  YardmasterError,
} from '../../core/api/index.ts';
import { isClass } from './actor-class.ts';
import { ActorObject, callerIn, readResult, serialiseActor } from './actor-handle.ts';
import { unpackArguments } from './arguments.ts';
import {
  callInTask,
  contextOf,
  describeFailure,
  endRun,
  type RunContext,
  type TaskSurroundings,
} from './context.ts';
import { functionSpec, loadFunction } from './load-function.ts';

interface Hosted {
  readonly actor: ActorObject;
  readonly context: RunContext;
  readonly released: AbortController;
}

/** The actors of one thread. */
export class ActorHost {
  private readonly actors = new Map<string, Hosted>();
  /** Aborted when an actor is released before it is made. */
  private readonly making = new Map<string, AbortController>();

  /** @param nowMs - times the calls */
  constructor(
    private readonly nowMs: () => number,
    private readonly surroundings: TaskSurroundings | undefined,
  ) {}

  /** Makes the actor of a task. Its description is the result. Never rejects. */
  async make(task: ExecutableTask): Promise<ExecutionResult> {
    const { nowMs, surroundings } = this;
    const { key, actorAt: worker = '' } = task;
    const released = new AbortController();
    const context = contextOf(key, { signal: released.signal, surroundings });
    const startMs = nowMs();
    this.making.set(key, released);
    try {
      const spec = functionSpec(task);
      const found = loadFunction(spec, surroundings);
      const made: unknown = typeof found === 'function' ? found : await found;
      if (!isClass(made)) throw notClass(spec.name, spec.module);
      const callerFor = callerIn(context);
      const args = unpackArguments(spec.args, task.inputs, (bytes) => readResult(bytes, callerFor));
      const object = callInTask(context, () => new made(...(args as never[])));
      if (released.signal.aborted) throw actorLost(key);
      const actor = new ActorObject(object, { context, nowMs, callerFor });
      this.actors.set(key, { actor, context, released });
      const { type, methods } = actor;
      const value = serialiseActor({ key, worker, type, methods });
      return { kind: 'success', value, type, startMs, stopMs: nowMs() };
    } catch (thrown) {
      endRun(context);
      return { kind: 'failure', error: describeFailure(thrown) };
    } finally {
      if (this.making.get(key) === released) this.making.delete(key);
    }
  }

  /** Calls a method, or reads a property. Never rejects. */
  call({ key, ...request }: ActorCall): Promise<ExecutionResult> {
    const hosted = this.actors.get(key);
    if (hosted !== undefined) return hosted.actor.call(request);
    return Promise.resolve({ kind: 'failure', error: describeFailure(actorLost(key)) });
  }

  /** The actor is needed no more. No-op when it is not here. */
  release(key: string): void {
    this.making.get(key)?.abort();
    const hosted = this.actors.get(key);
    if (hosted === undefined) return;
    this.actors.delete(key);
    hosted.released.abort();
    endRun(hosted.context);
  }

  close(): void {
    for (const key of [...this.making.keys(), ...this.actors.keys()]) this.release(key);
  }
}

/** The error for callers of an actor that has ended. */
export function actorLost(key: string, cause?: unknown): YardmasterError {
  return new YardmasterError(
    'ERR_ACTOR_LOST',
    `the actor "${key}" is gone, and its state with it: its worker or its thread ended, or it was released; submit it again`,
    { key },
    cause === undefined ? {} : { cause },
  );
}

function notClass(name: string, module: string): YardmasterError {
  return new YardmasterError(
    'ERR_FUNCTION_MISSING',
    `"${name}" of ${module} is to be an actor and is not a class`,
    { module, name },
  );
}
