import type { Clock, WireMessage } from '../../core/api/index.ts';
import {
  ACTOR_PATIENCE_MS,
  ActorCalls,
  type Pause,
  pausingLater,
  type Peers,
} from '../peers/peers.ts';
import type { ActorCaller } from '../tasks/index.ts';
import type { KeyEntry } from './entry.ts';
import { Future, type FutureOwner } from './future.ts';
import { releasedError } from './key-table.ts';

/** The methods of a session that its actors use. */
interface ActorsOwner extends FutureOwner {
  readonly clock: Clock;
  readonly pause: Pause | undefined;
  readonly signal: AbortSignal;
  readonly sharesMemory: boolean;
  request<T>(method: string, parameters: WireMessage): Promise<T>;
}

/** The caller of the actors whose handles the client has. A handle keeps its actor alive. */
export class SessionActors {
  private readonly calls: ActorCalls;
  /** Ends the calls that are open, by key. */
  private readonly open = new Map<string, Set<() => void>>();

  constructor(
    private readonly owner: ActorsOwner,
    peers: Peers,
  ) {
    this.calls = new ActorCalls(peers, (worker, parameters) =>
      owner.request('command', {
        command: 'proxy',
        parameters: { worker, method: 'actor-call', parameters },
      }),
    );
  }

  callerFor(entry: KeyEntry): ActorCaller {
    const { owner, calls } = this;
    const hold = new Future(owner, entry);
    let isReleased = false;
    return {
      sharesMemory: owner.sharesMemory,
      send: (actor, request) => {
        const error = entry.error() ?? (isReleased ? releasedError(entry.key) : undefined);
        if (error !== undefined) return Promise.reject(error);
        const answer = this.untilLost(entry, calls.send(actor, request));
        const { clock, pause } = owner;
        return pausingLater(pause, answer, { clock, afterMs: ACTOR_PATIENCE_MS });
      },
      release: () => {
        isReleased = true;
        hold.release();
      },
    };
  }

  /** The scheduler says that something failed: an actor that was there is lost. */
  onErred(key: string): void {
    for (const end of this.open.get(key) ?? []) end();
  }

  private async untilLost<T>(entry: KeyEntry, answer: Promise<T>): Promise<T> {
    const { key } = entry;
    const ends = this.open.get(key) ?? new Set<() => void>();
    this.open.set(key, ends);
    let end = (): void => undefined;
    const lost = new Promise<never>((_resolve, reject) => {
      end = () => reject(entry.error() ?? new Error(`"${key}" failed`));
    });
    ends.add(end);
    try {
      return await Promise.race([answer, lost]);
    } catch (error) {
      // What the client itself knows says more than that the connection is gone.
      if (this.owner.signal.aborted) throw this.owner.signal.reason as Error;
      throw error;
    } finally {
      ends.delete(end);
      if (ends.size === 0) this.open.delete(key);
    }
  }
}
