import type { DisconnectCleanup } from './disconnect-cleanup.ts';

/** The clients that have used something by its name, and are still there. */
export class Members {
  private readonly withdrawals = new Map<string, () => void>();

  constructor(
    private readonly departures: DisconnectCleanup,
    private readonly onEmpty: () => void,
  ) {}

  get size(): number {
    return this.withdrawals.size;
  }

  add(client: string): void {
    if (this.withdrawals.has(client)) return;
    const withdraw = this.departures.add(client, () => {
      this.withdrawals.delete(client);
      if (this.size === 0) this.onEmpty();
    });
    this.withdrawals.set(client, withdraw);
  }

  clear(): void {
    for (const withdraw of this.withdrawals.values()) withdraw();
    this.withdrawals.clear();
  }
}
