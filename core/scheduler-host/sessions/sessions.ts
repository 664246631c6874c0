import type { Channel } from '../../api/channel.ts';
import type { Clock } from '../../api/clock.ts';
import type { YardmasterError } from '../../api/errors.ts';
import type { Caller, NewStimulus } from '../../api/plugin.ts';
import type { WireMessage } from '../../api/transport.ts';
import type { GatherReply, RemotePlugin } from '../../messages/protocol.ts';
import type { ClusterState } from '../../state/cluster.ts';
import type { WorkerState } from '../../state/task.ts';
import type { ReconnectGrace } from './reconnect-grace.ts';
import type { PartsRelay } from '../parts-relay.ts';
import type { WorkerLosses } from './worker-losses.ts';

/** A connection to the scheduler, as other components than its session see it. */
export interface Peer {
  readonly channel: Channel;
  send(message: WireMessage): void;
  /** Sends what is queued, then closes. */
  end(): void;
}

/** Who is connected. */
export interface Sessions {
  readonly all: Set<Peer>;
  /** Registered workers by address. */
  readonly workers: Map<string, Peer>;
  /** Registered clients by key. */
  readonly clients: Map<string, Peer>;
  /** Largest message in bytes that passes on all connections; Infinity: no limit. */
  messageBytesMax: number;
}

/** What a session needs of its scheduler. */
export interface SessionHost {
  readonly serverId: string;
  readonly clock: Clock;
  readonly cluster: ClusterState;
  readonly sessions: Sessions;
  readonly reconnectGrace: ReconnectGrace;
  readonly losses: WorkerLosses;
  /** Plugins that clients have registered for all workers. */
  readonly workerPlugins: readonly RemotePlugin[];
  /** Plugins that clients have registered for the nannies of all workers. */
  readonly nannyPlugins: readonly RemotePlugin[];
  /** Handles a stimulus, at once unless another one is being handled. */
  accept(stimulus: NewStimulus & { readonly stimulusId?: string }): void;
  /** A name that no stimulus has had: `task-finished-17`. */
  nextStimulusId(op: string): string;
  /** When all that a client has said has been handled; undefined: it has been. */
  settled(client: string): Promise<void> | undefined;
  command(name: string, parameters: unknown, caller: Caller): unknown;
  /** @param relay - what is large is offered through it, rather than given at once */
  gather(keys: readonly string[], relay?: PartsRelay): Promise<GatherReply>;
  report(error: YardmasterError): void;
}

/**
 * Connected workers of Node that meet a condition: workers of other languages have other plugins.
 * O(workers).
 */
export function connectedNodeWorkers(
  sessions: Sessions,
  cluster: ClusterState,
  isMeant: (worker: WorkerState) => boolean = () => true,
): readonly (readonly [address: string, channel: Channel])[] {
  return [...sessions.workers].flatMap(([address, { channel }]) => {
    const worker = cluster.workers.get(address);
    const isOfNode = worker?.language === 'javascript' && isMeant(worker);
    return isOfNode ? [[address, channel] as const] : [];
  });
}
