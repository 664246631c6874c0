import { inBackground } from '../../core/shared/timers.ts';
import type { Clock, Transport } from '../../core/api/index.ts';
import type { ActorDescription, ActorRequest, RunContext } from '../tasks/index.ts';
import { ACTOR_PATIENCE_MS, ActorCalls, pauseOf, pausingLater, Peers } from './peers.ts';

const CONNECT_TIMEOUT_MS = 10_000;

/** The callers of the actors whose handles tasks have received. One for each thread. */
export class TaskActors {
  private readonly clock: Clock;
  private readonly peers: Peers;
  private readonly calls: ActorCalls;

  constructor({ clock, transports }: { clock: Clock; transports: readonly Transport[] }) {
    this.clock = clock;
    this.peers = new Peers({ clock, transports, timeoutMs: CONNECT_TIMEOUT_MS });
    this.calls = new ActorCalls(this.peers);
  }

  /** As {@link ActorCalls.send}; a task that waits for long lets another one run. */
  send(run: RunContext, actor: ActorDescription, request: ActorRequest): Promise<Uint8Array> {
    const answer = this.calls.send(actor, request);
    return pausingLater(pauseOf(run), answer, { clock: this.clock, afterMs: ACTOR_PATIENCE_MS });
  }

  close(): void {
    inBackground(this.peers.close(), 'connections to workers could not be closed');
  }
}
