import type { ToClientMessage } from '../../core/messages/to-client.ts';

/** How the result of a wanted key is. */
type KeyStatus = 'pending' | 'memory' | 'failed' | 'cancelled';

/** A client that wants results, and waits for all of them. */
export class SimulatedClient {
  /** Wanted keys without a result or an error. */
  openCount = 0;
  failedCount = 0;
  /** When the message that was sent last arrives. */
  lastNewsMs = 0;
  /** Why a key failed first, for people. */
  firstFailure: string | undefined;
  private readonly keys = new Map<string, KeyStatus>();

  /** @param settled - called when the number of open keys changes to or from 0 */
  constructor(
    readonly name: string,
    private readonly settled: (isSettled: boolean) => void,
  ) {}

  want(keys: readonly string[]): void {
    for (const key of keys) {
      if (!this.keys.has(key)) this.set(key, 'pending');
    }
  }

  statusOf(key: string): KeyStatus | undefined {
    return this.keys.get(key);
  }

  get wanted(): readonly string[] {
    return [...this.keys.keys()];
  }

  take(message: ToClientMessage): void {
    switch (message.op) {
      case 'key-in-memory':
        this.set(message.key, 'memory');
        return;
      case 'lost-data':
      case 'task-retried':
        this.set(message.key, 'pending');
        return;
      case 'task-erred':
        this.firstFailure ??= `${message.key}: ${message.failure.exceptionText}`;
        this.set(message.key, 'failed');
        return;
      case 'cancelled-keys':
      case 'data-refused':
        for (const key of message.keys) this.set(key, 'cancelled');
        return;
      case 'restart':
        for (const key of this.keys.keys()) this.set(key, 'cancelled');
        return;
    }
  }

  private set(key: string, status: KeyStatus): void {
    const before = this.keys.get(key);
    if (before === status) return;
    this.keys.set(key, status);
    if (status === 'failed') this.failedCount++;
    if (before === 'failed') this.failedCount--;
    const openBefore = this.openCount;
    if (status === 'pending') this.openCount++;
    if (before === 'pending') this.openCount--;
    if (openBefore === 0 && this.openCount > 0) this.settled(false);
    if (openBefore > 0 && this.openCount === 0) this.settled(true);
  }
}
