import type { Client, Submitter } from '../client/index.ts';

/** Which keys of the cluster the subtasks of a session have. The ids of open subtasks are their own. */
export class SessionKeys {
  private reuses = 1;
  private readonly submitter: Submitter;

  constructor(
    private readonly client: Client,
    private readonly namespace: string,
    /** The key of an open subtask. */
    private readonly keyOf: (id: string) => string | undefined,
    /** Whether the session has had a subtask of this id. */
    private readonly wasUsed: (id: string) => boolean,
  ) {
    this.submitter = client.with({});
  }

  /** The plain key for an id that is new; a unique key for an id that the session uses again. */
  private fresh(id: string): string {
    const plain = `${this.namespace}${id}`;
    // The cluster may still have the first task of this key, because others depend on it.
    if (!this.wasUsed(id) && !this.submitter.isTaken(plain)) return plain;
    do this.reuses++;
    while (this.submitter.isTaken(`${plain}#${this.reuses}`));
    return `${plain}#${this.reuses}`;
  }

  /** The key for each id: of new subtasks, of open ones, and of others whatever it is. */
  forBatch(ids: readonly string[]): (id: string) => string {
    const keys = new Map(ids.map((id) => [id, this.fresh(id)]));
    return (id) => keys.get(id) ?? this.keyOf(id) ?? `${this.namespace}${id}`;
  }

  /**
   * Has the scheduler keep them for this client.
   * @throws RemoteError `ERR_GRAPH_INVALID` when another client has one of them
   */
  async claim(keys: readonly string[]): Promise<void> {
    await this.client.command('claim-keys', { keys });
  }

  /** Others may have them. */
  async unclaim(keys: readonly string[]): Promise<void> {
    if (keys.length === 0 || this.client.isClosed) return;
    try {
      await this.client.command('unclaim-keys', { keys });
    } catch {
      // The connection is over, and with it all claims.
    }
  }
}
