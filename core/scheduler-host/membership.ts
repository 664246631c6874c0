import { createHash, timingSafeEqual } from 'node:crypto';
import { networkInterfaces } from 'node:os';
import type { Clock } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import type {
  RegisterClientReply,
  RegisterClientRequest,
  RegisterWorkerReply,
  RegisterWorkerRequest,
} from '../messages/protocol.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { CLOCK } from '../host/tokens.ts';
import { TurnBudget } from '../shared/turn.ts';
import { SERVICE_PREFIX } from '../state/cluster.ts';
import type { WorkerIdentity } from '../state/worker.ts';
import { heartbeatIntervalMs } from '../util/event-loop.ts';
import { unreachableAddress } from '../util/hosts.ts';
import type { SessionServices } from './session.ts';
import type { Peer } from './sessions.ts';
import { STIMULI, type Stimuli } from './tokens.ts';

/**
 * Joining and leaving the cluster. Joining takes two steps. First the peer is admitted, which
 * closes its former connection. Then, when its session has bound the new connection, it enters,
 * because the scheduler's next messages are meant for the new connection.
 */

/** Clients are asked to report this many times more rarely than workers. */
const CLIENT_HEARTBEAT_FACTOR = 10;

/**
 * @param peerAddress - from where the worker has connected
 * @throws YardmasterError `ERR_REGISTRATION` when its address or its name is taken, or others cannot reach its address
 */
export function admitWorker(
  host: SessionServices,
  { identity, secret }: RegisterWorkerRequest,
  peerAddress: string,
): void {
  const { address, name } = identity;
  checkAddress(address, peerAddress);
  const { workers, aliases } = host.cluster;
  dropAwaited(host, identity, secret);
  // One that is to be removed at the end of this turn may be the former self of this one.
  host.losses.flush();
  // A worker that comes back may have noticed before us that its connection was lost.
  if (host.journal.mayReturn(address, secret)) return;
  if (workers.has(address) && unseat(host.sessions.workers, address, secret)) {
    host.stimuli.accept({
      op: 'remove-worker',
      worker: address,
      expected: true,
      close: false,
    });
  }
  if (workers.has(address)) refuseWorker('address', address, address);
  if (aliases.has(name)) refuseWorker('name', name, address);
}

function checkAddress(address: string, peerAddress: string): void {
  const wrong = unreachableAddress(address, peerAddress, () =>
    Object.values(networkInterfaces()).flatMap((own) => (own ?? []).map((one) => one.address)),
  );
  if (wrong === undefined) return;
  throw new YardmasterError('ERR_REGISTRATION', wrong, { worker: address, peer: peerAddress });
}

/** A worker of the journal whose address or name another one has now does not come back. */
function dropAwaited(
  { cluster, journal, stimuli }: SessionServices,
  { address, name }: WorkerIdentity,
  secret: string | undefined,
): void {
  for (const taken of new Set([address, cluster.aliases.get(name) ?? address])) {
    if (!journal.isAwaited(taken)) continue;
    if (taken === address && journal.mayReturn(address, secret)) continue;
    stimuli.accept({ op: 'remove-worker', worker: taken, expected: true, close: false });
  }
}

/** Enqueues the registration, and returns the answer to the worker. */
export function enterWorker(
  host: SessionServices,
  { identity, status, metrics, held, runs, secret }: RegisterWorkerRequest,
): RegisterWorkerReply {
  host.stimuli.accept({
    op: 'register-worker',
    identity,
    status,
    metrics,
    held,
    runs,
    ...hashOf(host, secret),
  });
  const workerPlugins = host.workerPlugins.all;
  const nannyPlugins = identity.nanny === undefined ? [] : host.nannyPlugins.all;
  return {
    heartbeatIntervalMs: heartbeatIntervalMs(host.cluster.workers.size),
    nowMs: host.clock.nowMs(),
    ...(host.journal.isOn ? { keepsRuns: true } : {}),
    ...(workerPlugins.length === 0 ? {} : { workerPlugins }),
    ...(nannyPlugins.length === 0 ? {} : { nannyPlugins }),
  };
}

/** @param error - undefined: it has closed the connection itself */
export function workerLeft(host: SessionServices, address: string, error: Error | undefined): void {
  const worker = host.cluster.workers.get(address);
  if (worker === undefined) return;
  // A worker that says goodbye first does not make its tasks suspicious.
  const expected = error === undefined && worker.status.startsWith('clos');
  if (expected)
    host.stimuli.accept({ op: 'remove-worker', worker: address, expected, close: false });
  else host.losses.add(address);
}

/**
 * True when the client was here, or waited for: then it still has all that it wanted.
 *
 * @throws YardmasterError `ERR_REGISTRATION` when another client has its key, or it is a name of the scheduler's own clients
 */
export function admitClient(
  host: SessionServices,
  { client, returnWithinMs = 0, secret }: RegisterClientRequest,
): { readonly isBack: boolean } {
  if (client.startsWith(SERVICE_PREFIX)) {
    throw new YardmasterError(
      'ERR_REGISTRATION',
      `the client "${client}" cannot have a name that begins with "${SERVICE_PREFIX}": the scheduler keeps results in such names; choose another name`,
      { client },
    );
  }
  const { sessions, reconnectGrace } = host;
  const isBack =
    returnWithinMs > 0 &&
    (unseat(sessions.clients, client, secret) || reconnectGrace.end(client, secret));
  if (!host.cluster.clients.has(client) || isBack) return { isBack };
  throw new YardmasterError(
    'ERR_REGISTRATION',
    `there is a client "${client}" already; choose another name`,
    { client },
  );
}

/**
 * Enqueues the registration unless the client has come back, and returns the answer to the client.
 */
export function enterClient(
  host: SessionServices,
  { client, versions, secret }: RegisterClientRequest,
  { isBack }: { readonly isBack: boolean },
): RegisterClientReply {
  if (!isBack) {
    host.stimuli.accept({
      op: 'register-client',
      client,
      versions,
      ...hashOf(host, secret),
    });
  }
  const { clients, messageBytesMax, sharesMemory } = host.sessions;
  const channel = clients.get(client)?.channel;
  const ownBytesMax = channel?.messageBytesMax ?? Infinity;
  const bytesMax = Math.min(messageBytesMax, ownBytesMax);
  return {
    heartbeatIntervalMs: CLIENT_HEARTBEAT_FACTOR * heartbeatIntervalMs(clients.size),
    ...(bytesMax === Infinity ? {} : { messageBytesMax: bytesMax }),
    ...(sharesMemory && channel?.sharesMemory === true ? { sharesMemory } : {}),
    ...(host.journal.isOn ? { committed: host.journal.committedOf(client) } : {}),
  };
}

/** @param returnWithinMs - milliseconds within which it said that it may come back */
export function clientLeft(
  host: SessionServices,
  client: string,
  returnWithinMs: number,
  secret: SessionSecret | undefined,
): void {
  host.reconnectGrace.begin(client, returnWithinMs, secret, () => {
    host.stimuli.accept({ op: 'remove-client', client });
  });
}

/**
 * Ends the connection that a peer had before, if it proves to be the same peer. Its seat goes first: so its end
 * says nothing of the peer.
 */
function unseat(seats: Map<string, Peer>, name: string, secret: string | undefined): boolean {
  const lost = seats.get(name);
  if (lost?.secret?.matches(secret) !== true) return false;
  seats.delete(name);
  lost.channel.abort(new YardmasterError('ERR_CLOSED', `${name} has connected anew`));
  return true;
}

function refuseWorker(field: 'address' | 'name', value: string, address: string): never {
  throw new YardmasterError(
    'ERR_REGISTRATION',
    `there is a worker with the ${field} "${value}" already; stop it, or choose another ${field}`,
    { field, value, worker: address },
  );
}

/** The hash by which a journal knows the peer again. */
function hashOf(
  { journal }: SessionServices,
  secret: string | undefined,
): { readonly secretHash?: string } {
  if (!journal.isOn || secret === undefined) return {};
  return { secretHash: new SessionSecret(secret).toString() };
}

/**
 * Workers whose connections broke. Those of one turn of the event loop are removed together at its end: when
 * a network or a machine fails, one by one would make a task go from each lost worker to the next, and fail
 * with `ERR_KILLED_WORKER`.
 */
@collaborator
export class WorkerLosses {
  private readonly lost = new Set<string>();

  constructor(
    @inject(CLOCK) private readonly clock: Clock,
    @inject(STIMULI) private readonly stimuli: Stimuli,
  ) {}

  /** @param address - of a registered worker */
  add(address: string): void {
    this.lost.add(address);
    if (this.lost.size === 1) TurnBudget.of(this.clock).later(() => this.flush());
  }

  /** Removes those that are lost so far. */
  flush(): void {
    if (this.lost.size === 0) return;
    const workers = [...this.lost];
    this.lost.clear();
    const [worker] = workers;
    // One alone is removed like one that a plugin removes: so it is found in the story and the logs.
    if (workers.length > 1 || worker === undefined)
      this.stimuli.accept({ op: 'workers-lost', workers });
    else this.stimuli.accept({ op: 'remove-worker', worker, expected: false, close: false });
  }
}

/**
 * Proves that a peer which connects anew is the one that had the session before. Its name does not: every
 * client sees the names of all workers and clients. Only a hash is kept.
 */
export class SessionSecret {
  private readonly hash: Buffer;

  constructor(secret: string, hash = secretHash(secret)) {
    this.hash = hash;
  }

  /** The reverse of {@link toString}. */
  static ofHash(hash: string): SessionSecret {
    return new SessionSecret('', Buffer.from(hash, 'base64url'));
  }

  toString(): string {
    return this.hash.toString('base64url');
  }

  /** Takes the same time whether the secret is nearly right or not at all. */
  matches(secret: string | undefined): boolean {
    return secret !== undefined && timingSafeEqual(secretHash(secret), this.hash);
  }
}

function secretHash(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}
