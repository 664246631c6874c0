import { EventEmitter } from 'eventemitter3';
import { YardmasterError } from '../api/errors.ts';
import type { EventName, EventSource, SchedulerEvents, SchedulerHooks } from '../api/hooks.ts';
import { type Logger } from '../api/plugin.ts';
import { FailureCount } from '../util/failure-count.ts';
import { nextToReport } from '../host/log.ts';
import { readOnly } from '../shared/read-only.ts';
import { isPromise } from '../util/values.ts';
import { complaintAboutListener } from './contracts.ts';
import { collaborator, inject, LOGGER } from './injection.ts';

type Listener = (...args: never[]) => unknown;
type Wrapped = (...args: unknown[]) => void;

/** @param hook - `event:worker-added` */
export type ListenerFailure = (hook: string, cause: unknown) => void;

/** How to listen. */
export interface ListenOptions {
  /** Called when the listener threw, or returned a promise that was rejected. Default: reports it. */
  readonly onFailure?: ListenerFailure;
  /** Listen to one event alone. */
  readonly isOnce?: boolean;
  /** Give the listener the state itself, and not views that cannot change it. Default false. */
  readonly isTrusted?: boolean;
  /** Called before the listener. */
  readonly onCalled?: () => void;
}

/** What happens around the call of a listener. */
interface Around {
  readonly onFailure: ListenerFailure;
  readonly isTrusted: boolean;
  readonly before: () => void;
}

/**
 * The outer event bus. Events of a stimulus are held until it is complete; a listener that throws
 * harms neither the others nor the scheduler.
 */
@collaborator
export class EventBus implements EventSource {
  private readonly emitter = new EventEmitter<string>();
  /** The wrappers of each listener by event, to find them again. */
  private readonly wrappers = new Map<string, Map<Listener, Wrapped[]>>();
  private readonly held: (readonly [name: EventName, args: readonly unknown[]])[] = [];
  private isHolding = false;
  private isFlushing = false;
  private readonly failures = new FailureCount();

  constructor(@inject(LOGGER) private readonly log: Logger) {}

  on<Name extends EventName>(name: Name, listener: SchedulerEvents[Name]): void {
    this.listen(name, listener);
  }

  once<Name extends EventName>(name: Name, listener: SchedulerEvents[Name]): void {
    this.listen(name, listener, { isOnce: true });
  }

  /**
   * As `on` and `once`.
   * @returns what ends it
   * @throws YardmasterError `ERR_CONFIG` when there is no such event
   */
  listen<Name extends EventName>(
    name: Name,
    listener: SchedulerEvents[Name],
    {
      onFailure = this.reportFailure,
      isOnce = false,
      isTrusted = false,
      onCalled,
    }: ListenOptions = {},
  ): () => void {
    refuseListener(name, listener);
    const before = (): void => {
      if (isOnce) this.unwrap(name, listener, wrapped);
      onCalled?.();
    };
    const wrapped = this.wrap(name, listener, { onFailure, isTrusted, before });
    if (isOnce) this.emitter.once(name, wrapped);
    else this.emitter.on(name, wrapped);
    return () => {
      this.emitter.off(name, wrapped);
      this.unwrap(name, listener, wrapped);
    };
  }

  off<Name extends EventName>(name: Name, listener: SchedulerEvents[Name]): void {
    refuseListener(name, listener);
    const wrapped = this.wrappers.get(name)?.get(listener)?.pop();
    if (wrapped === undefined) return;
    this.emitter.off(name, wrapped);
    this.unwrap(name, listener, wrapped);
  }

  /** Calls the listeners now, or after the present stimulus. */
  emit<Name extends EventName>(name: Name, ...args: Parameters<SchedulerEvents[Name]>): void {
    if (this.emitter.listenerCount(name) === 0) return;
    this.held.push([name, args]);
    if (!this.isHolding) this.flush();
  }

  /** From now on events wait for {@link release}. */
  hold(): void {
    this.isHolding = true;
  }

  /** Delivers what waited, in order. */
  release(): void {
    this.isHolding = false;
    this.flush();
  }

  /** Forgets all listeners. */
  dispose(): void {
    this.emitter.removeAllListeners();
    this.wrappers.clear();
  }

  /** What listeners emit comes after what was emitted before. */
  private flush(): void {
    if (this.isFlushing) return;
    this.isFlushing = true;
    for (let next = this.held.shift(); next !== undefined; next = this.held.shift()) {
      this.emitter.emit(next[0], ...next[1]);
    }
    this.isFlushing = false;
  }

  private wrap(
    name: EventName,
    listener: Listener,
    { onFailure, isTrusted, before }: Around,
  ): Wrapped {
    const hook = `event:${name}`;
    const wrapped: Wrapped = (...args) => {
      before();
      try {
        const result = (listener as (...given: unknown[]) => unknown)(
          ...(isTrusted ? args : args.map(readOnly)),
        );
        if (isPromise(result)) result.then(undefined, (thrown: unknown) => onFailure(hook, thrown));
      } catch (thrown) {
        onFailure(hook, thrown);
      }
    };
    const ofEvent = this.wrappers.get(name) ?? new Map<Listener, Wrapped[]>();
    this.wrappers.set(name, ofEvent);
    ofEvent.set(listener, [...(ofEvent.get(listener) ?? []), wrapped]);
    return wrapped;
  }

  private unwrap(name: EventName, listener: Listener, wrapped: Wrapped): void {
    const ofEvent = this.wrappers.get(name);
    const left = (ofEvent?.get(listener) ?? []).filter((candidate) => candidate !== wrapped);
    if (left.length === 0) ofEvent?.delete(listener);
    else ofEvent?.set(listener, left);
  }

  /** For listeners of the program around the scheduler. */
  private readonly reportFailure: ListenerFailure = (hook, cause) => {
    const name = hook.slice('event:'.length);
    const thrown = new YardmasterError(
      'ERR_PLUGIN_HOOK',
      `a listener of the event "${name}" threw: ${messageOf(cause)}`,
      { hook },
      { cause },
    );
    const error = nextToReport(this.failures, thrown, { kind: hook, of: 'event' });
    if (error === undefined) return;
    this.log.error({ err: error }, error.message);
    // A listener of `error` that throws is only logged; another `error` event would call it again,
    // for ever.
    if (name !== 'error') this.emit('error', error);
  };
}

/**
 * Observers that publish the events of the kernel on the outer event bus.
 * @param workerLeft - called first, with the address of a worker that was removed
 */
export function busHooks(
  bus: EventBus,
  workerLeft: (address: string) => void,
): Partial<SchedulerHooks> {
  return {
    taskTransition: (task, _start, finish) => {
      if (finish === 'erred') bus.emit('task-erred', task);
    },
    graphUpdated: ({ client, tasks }) => bus.emit('graph-submitted', client, tasks.length),
    workerAdded: (worker) => bus.emit('worker-added', worker),
    workerRemoved: (worker, stimulusId) => {
      workerLeft(worker.address);
      bus.emit('worker-removed', worker, stimulusId);
    },
    workerStatusChanged: (worker) => bus.emit('worker-status', worker),
    clientAdded: (client) => bus.emit('client-added', client),
    clientRemoved: (client) => bus.emit('client-removed', client),
  };
}

function refuseListener(name: unknown, listener: unknown): void {
  const complaint = complaintAboutListener(name, listener);
  if (complaint !== undefined) throw new YardmasterError('ERR_CONFIG', complaint, { event: name });
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
