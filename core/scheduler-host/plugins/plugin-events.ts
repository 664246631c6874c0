import type { EventName, EventSource, SchedulerEvents } from '../../api/events.ts';
import type { EventBus, ListenerFailure } from '../../plugin-host/event-bus.ts';

interface Entry {
  readonly name: EventName;
  readonly listener: SchedulerEvents[EventName];
  stop(): void;
}

/** The event bus as one plugin sees it: failures of its listeners are its own, and its listeners end with it. */
export class PluginEvents implements EventSource {
  private readonly entries: Entry[] = [];
  private isDisposed = false;

  /** @param onFailure - a listener threw, or returned a promise that was rejected */
  constructor(
    private readonly bus: EventBus,
    private readonly onFailure: ListenerFailure,
  ) {}

  on<Name extends EventName>(name: Name, listener: SchedulerEvents[Name]): void {
    this.add(name, listener, false);
  }

  once<Name extends EventName>(name: Name, listener: SchedulerEvents[Name]): void {
    this.add(name, listener, true);
  }

  off<Name extends EventName>(name: Name, listener: SchedulerEvents[Name]): void {
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
    if (this.isDisposed) return;
    const entry: Entry = { name, listener, stop: () => stop() };
    const stop = this.bus.listen(name, listener, {
      onFailure: this.onFailure,
      isOnce,
      onCalled: () => {
        if (isOnce) this.forget(entry);
      },
    });
    this.entries.push(entry);
  }

  private forget(entry: Entry): void {
    const index = this.entries.indexOf(entry);
    if (index >= 0) this.entries.splice(index, 1);
  }
}
