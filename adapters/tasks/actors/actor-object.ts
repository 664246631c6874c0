import { type ExecutionResult, YardmasterError } from '../../../core/api/index.ts';
import { unpackWith } from '../arguments.ts';
import { callInTask, type RunContext } from '../context.ts';
import { describeFailure } from '../failure.ts';
import { typeName } from '../../../core/util/type-name.ts';
import { serialise } from '../serialise.ts';
import { type ActorCaller, type ActorRequest, makeHandle } from './handle.ts';

type Members = Readonly<Record<string, unknown>>;

/** What the calls of an actor need to know. */
interface ActorSettings {
  /** Of the task that made it. */
  readonly context: RunContext;
  readonly nowMs: () => number;
  /** For handles of other actors among the arguments. */
  readonly callerFor: () => ActorCaller;
}

/**
 * An object whose methods are called remotely. Calls begin in the order of arrival; a call that
 * waits delays the next one, unless its class has a static `concurrentCalls` above 1.
 */
export class ActorObject {
  readonly methods: readonly string[];
  private readonly callsMax: number;
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(
    private readonly object: object,
    private readonly settings: ActorSettings,
  ) {
    this.methods = methodsOf(object);
    this.callsMax = concurrentCallsOf(object);
  }

  get type(): string {
    return typeName(this.object);
  }

  /** Never rejects. */
  async call(request: ActorRequest): Promise<ExecutionResult> {
    if (this.running >= this.callsMax) {
      await new Promise<void>((resolve) => this.waiting.push(resolve));
    } else this.running++;
    try {
      return await this.perform(request);
    } catch (thrown) {
      return { kind: 'failure', error: describeFailure(thrown) };
    } finally {
      const next = this.waiting.shift();
      if (next === undefined) this.running--;
      else next();
    }
  }

  private async perform({ member, args, actors = [] }: ActorRequest): Promise<ExecutionResult> {
    const { context, nowMs, callerFor } = this.settings;
    const startMs = nowMs();
    const result: unknown = await callInTask(context, () => {
      if (args === undefined) return this.read(member);
      const given = unpackWith(args, (key) => {
        const description = actors.find((actor) => actor.key === key);
        if (description !== undefined) return makeHandle({ description, caller: callerFor() });
        const message = `the call of "${member}" came without what describes "${key}"`;
        throw new YardmasterError('ERR_PROTOCOL', message, { key, member });
      });
      return this.method(member)(...given);
    });
    const value = serialise(result, 'result', undefined, true);
    return { kind: 'success', value, type: typeName(result), startMs, stopMs: nowMs() };
  }

  private method(member: string): (...args: unknown[]) => unknown {
    const found = (this.object as Members)[member];
    if (typeof found === 'function' && this.methods.includes(member)) {
      return (...args) => (found as (...args: unknown[]) => unknown).apply(this.object, args);
    }
    throw this.missing(`method "${member}"; it has ${this.methods.join(', ') || 'none'}`);
  }

  private read(member: string): unknown {
    const { object } = this;
    if (member in object && !(member in Object.prototype)) return (object as Members)[member];
    throw this.missing(`property "${member}"`);
  }

  private missing(what: string): YardmasterError {
    return new YardmasterError('ERR_FUNCTION_MISSING', `${this.type} has no ${what}`);
  }
}

/** Of its class and those above, and functions that it has itself. */
function methodsOf(object: object): string[] {
  const methods = new Set<string>();
  for (
    let holder: object | null = object;
    holder !== null && holder !== Object.prototype;
    holder = Object.getPrototypeOf(holder) as object | null
  ) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(holder))) {
      if (name !== 'constructor' && typeof value === 'function') methods.add(name);
    }
  }
  return [...methods];
}

function concurrentCallsOf(object: object): number {
  const { concurrentCalls } = object.constructor as { readonly concurrentCalls?: unknown };
  if (concurrentCalls === undefined) return 1;
  const isCount = concurrentCalls === Infinity || Number.isInteger(concurrentCalls);
  if (isCount && (concurrentCalls as number) >= 1) return concurrentCalls as number;
  throw new YardmasterError(
    'ERR_TASK',
    `${typeName(object)}.concurrentCalls must be a whole number, at least 1, or Infinity`,
  );
}
