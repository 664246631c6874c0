import { YardmasterError } from '../../api/errors.ts';
import type { EventName, EventSource, SchedulerEvents } from '../../api/events.ts';
import { complaintAboutListener } from '../../plugin-host/contracts.ts';
import type { EventBus, ListenerFailure } from '../../plugin-host/event-bus.ts';

interface Entry {
  readonly name: EventName;
  readonly listener: SchedulerEvents[EventName];
  stop(): void;
}

interface PluginEventsParts {
  /** The plugin, as messages call it. */
  readonly owner: string;
  /** Whether its listeners get the state itself: it is built in. */
  readonly isTrusted: boolean;
  /** Calls a listener of an event, and measures it. */
  run(name: EventName, call: () => unknown): unknown;
  /** A listener threw, or returned a promise that was rejected. */
  readonly onFailure: ListenerFailure;
}

/** The event bus as one plugin sees it: failures of its listeners are its own, and its listeners end with it. */
export class PluginEvents implements EventSource {
  private readonly entries: Entry[] = [];
  private isDisposed = false;

  constructor(
    private readonly bus: EventBus,
    private readonly parts: PluginEventsParts,
  ) {}

  on<Name extends EventName>(name: Name, listener: SchedulerEvents[Name]): void {
    this.add(name, listener, false);
  }

  once<Name extends EventName>(name: Name, listener: SchedulerEvents[Name]): void {
    this.add(name, listener, true);
  }

  off<Name extends EventName>(name: Name, listener: SchedulerEvents[Name]): void {
    this.check(name, listener);
    const entry = this.entries.findLast((one) => one.name === name && one.listener === listener);
    if (entry === undefined) return;
    this.forget(entry);
    entry.stop();
  }

  /** Takes all of its listeners away. Later ones are ignored. */
  dispose(): void {
    this.isDisposed = true;
    for (const entry of this.entries.splice(0)) entry.stop();
  }

  private add<Name extends EventName>(
    name: Name,
    listener: SchedulerEvents[Name],
    isOnce: boolean,
  ): void {
    this.check(name, listener);
    if (this.isDisposed) return;
    const entry: Entry = { name, listener, stop: () => stop() };
    const call = listener as (...args: unknown[]) => unknown;
    const measured = (...args: unknown[]): unknown => this.parts.run(name, () => call(...args));
    const stop = this.bus.listen(name, measured, {
      onFailure: this.parts.onFailure,
      isOnce,
      isTrusted: this.parts.isTrusted,
      onCalled: () => {
        if (isOnce) this.forget(entry);
      },
    });
    this.entries.push(entry);
  }

  private check(name: unknown, listener: unknown): void {
    const complaint = complaintAboutListener(name, listener);
    if (complaint === undefined) return;
    throw new YardmasterError('ERR_PLUGIN_SETUP', `events of ${this.parts.owner}: ${complaint}`, {
      event: name,
    });
  }

  private forget(entry: Entry): void {
    const index = this.entries.indexOf(entry);
    if (index >= 0) this.entries.splice(index, 1);
  }
}
