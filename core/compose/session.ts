import { Channel, type ChannelHandlers } from '../api/channel.ts';
import type { Clock } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import type { Caller, NewStimulus } from '../api/plugin.ts';
import type { Connection, ConnectionHandlers, WireMessage } from '../api/transport.ts';
import type { Absences } from './absences.ts';
import { heartbeatIntervalMs } from '../util/heartbeat.ts';
import {
  type CommandRequest,
  type GatherReply,
  type GatherRequest,
  type GetPartRequest,
  type HelloReply,
  type HelloRequest,
  PROTOCOL,
  type RegisterClientReply,
  type RegisterClientRequest,
  type RegisterWorkerReply,
  type RegisterWorkerRequest,
  type RemotePlugin,
  type Role,
  type WhoHasReply,
  type WhoHasRequest,
} from '../messages/protocol.ts';
import type { GraphPart, SubmittedGraph } from '../messages/stimulus.ts';
import type { ClusterState } from '../state/cluster.ts';
import type { WorkerIdentity } from '../state/worker.ts';
import { isPlainObject } from '../config/prepare.ts';
import { GraphParts } from './graph-parts.ts';
import { checkClientReport, checkRequest, checkWorkerReport } from './inbound.ts';
import { VERSION } from '../api/version.ts';
import { PartsRelay } from './parts-relay.ts';

/** Clients are asked to report this many times more rarely than workers. */
const CLIENT_HEARTBEAT_FACTOR = 10;

/** Errors of a connection that say the peer is wrong, and not merely gone. */
const BREACHES = ['ERR_PROTOCOL', 'ERR_FRAME'];

/** What a session needs of its scheduler. */
export interface SessionHost {
  readonly serverId: string;
  readonly clock: Clock;
  readonly cluster: ClusterState;
  readonly sessions: Sessions;
  readonly absences: Absences;
  /** Plugins that clients have registered for all workers. */
  readonly workerPlugins: readonly RemotePlugin[];
  /** Handles a stimulus, at once unless another one is being handled. */
  enqueue(stimulus: NewStimulus & { readonly stimulusId?: string }): void;
  /** A name that no stimulus has had: `task-finished-17`. */
  nextStimulusId(op: string): string;
  /** When all that a client has said has been handled; undefined: it has been. */
  settled(client: string): Promise<void> | undefined;
  command(name: string, parameters: unknown, caller: Caller): unknown;
  /** @param relay - what is large is offered through it, rather than given at once */
  gather(keys: readonly string[], relay?: PartsRelay): Promise<GatherReply>;
  report(error: YardmasterError): void;
}

/** What a session writes into a message, so that nobody can speak for somebody else. */
interface Stamped {
  worker?: string;
  client?: string;
  stimulusId?: string;
}

/** Who is connected. */
export interface Sessions {
  readonly all: Set<Session>;
  /** Registered workers by address. */
  readonly workers: Map<string, Session>;
  /** Registered clients by key. */
  readonly clients: Map<string, Session>;
}

/**
 * One connection to the scheduler, from its first message to its end. It checks all that comes in and
 * stamps it with the sender, so that nobody can speak for somebody else.
 */
export class Session implements ChannelHandlers {
  readonly channel: Channel;
  private role: Role | undefined;
  /** Address of the worker or key of the client, once registered. */
  private sender: string | undefined;
  /** Set while the answer to the registration has not left; messages have to come after it. */
  private held: WireMessage[] | undefined;
  /** Milliseconds within which a client whose connection broke may come back. */
  private returnWithinMs = 0;
  private isOver = false;
  private readonly relay = new PartsRelay();
  private readonly parts = new GraphParts();

  constructor(
    connection: Connection,
    private readonly host: SessionHost,
  ) {
    this.channel = new Channel(connection, host.clock, this);
    host.sessions.all.add(this);
  }

  /** What the transport is given: the channel, behind a check that it survives. */
  get handlers(): ConnectionHandlers {
    const { channel } = this;
    return {
      onMessages: (batch) => {
        for (const message of batch) {
          if (this.isOver) return;
          try {
            checkEnvelope(message);
            channel.onMessages([message]);
          } catch (error) {
            this.refuse(error);
          }
        }
      },
      onClose: (error) => channel.onClose(error),
    };
  }

  send(message: WireMessage): void {
    if (this.held !== undefined) this.held.push(message);
    // Memory may be freed with the next task; a write for it alone would delay that.
    else if (message['op'] === 'free-keys') this.channel.sendLater(message);
    else this.channel.send(message);
  }

  /** Sends what is queued, then closes. */
  end(): void {
    queueMicrotask(() => {
      void this.channel.close().catch((failed: unknown) => this.channel.abort(failed as Error));
    });
  }

  onMessage(message: WireMessage): void {
    const { sender } = this;
    if (sender === undefined) throw violation(`"${String(message['op'])}" before registration`);
    if (this.role === 'worker') {
      checkWorkerReport(message);
      (message as Stamped).worker = sender;
      this.take(message);
    } else if (message['op'] === 'drop-parts') {
      this.relay.drop(message);
    } else {
      if (message['op'] === 'close-client') {
        this.returnWithinMs = 0;
        return;
      }
      checkClientReport(message);
      (message as Stamped).client = sender;
      this.takeReport(message, sender);
    }
  }

  private takeReport(message: WireMessage, client: string): void {
    if (message['op'] === 'graph-part') {
      this.parts.add(message as unknown as GraphPart);
      return;
    }
    if (message['op'] !== 'update-graph') {
      this.take(message);
      return;
    }
    const graph = message as unknown as SubmittedGraph;
    const { tasks, keys, isWhole } = this.parts.end(graph);
    // What came in one piece is not copied: it may be one of very many small graphs.
    if (isWhole) this.take(tasks === graph.tasks ? message : { ...message, tasks, keys });
    else {
      const reason = 'parts of its graph were lost with a connection; submit it again';
      this.host.enqueue({ op: 'client-releases-keys', client, keys });
      this.send({ op: 'cancelled-keys', keys, reason });
    }
  }

  /** A message belongs to whoever receives it: it becomes the stimulus itself, not a copy. */
  private take(message: WireMessage): void {
    if (message['stimulusId'] === undefined || message['stimulusId'] === '') {
      (message as Stamped).stimulusId = this.host.nextStimulusId(message['op'] as string);
    }
    this.host.enqueue(message as unknown as NewStimulus);
  }

  onRequest(method: string, parameters: WireMessage): unknown {
    try {
      checkRequest(method, parameters);
      this.admit(method);
    } catch (error) {
      queueMicrotask(() => this.refuse(error)); // After the answer, which says the same.
      throw error;
    }
    // A question comes after all that was said before it.
    const settled = this.sender === undefined ? undefined : this.host.settled(this.sender);
    return settled === undefined
      ? this.answer(method, parameters)
      : settled.then(() => this.answer(method, parameters));
  }

  onClose(error?: Error): void {
    // What broke below the messages (a frame, the form of a request) was not reported by `refuse`.
    if (!this.isOver && YardmasterError.is(error) && BREACHES.includes(error.code)) {
      this.host.report(error);
    }
    this.isOver = true;
    this.relay.close();
    const { host, sender, role } = this;
    host.sessions.all.delete(this);
    if (sender === undefined) return;
    if (role === 'worker') {
      if (host.sessions.workers.get(sender) !== this) return;
      host.sessions.workers.delete(sender);
      const worker = host.cluster.workers.get(sender);
      if (worker === undefined) return;
      // A worker that says goodbye first does not make its tasks suspicious.
      const expected = error === undefined && worker.status.startsWith('clos');
      host.enqueue({ op: 'remove-worker', worker: sender, expected, close: false });
    } else {
      if (host.sessions.clients.get(sender) !== this) return;
      host.sessions.clients.delete(sender);
      host.absences.begin(sender, this.returnWithinMs, () => {
        host.enqueue({ op: 'remove-client', client: sender });
      });
    }
  }

  private caller(): Caller {
    const { role, sender } = this;
    if (sender === undefined) return {};
    return role === 'worker' ? { worker: sender } : { client: sender };
  }

  /** Who may ask what, and when. */
  private admit(method: string): void {
    const { role, sender } = this;
    if (method === 'hello') {
      if (role !== undefined) throw violation('a second hello');
      return;
    }
    if (role === undefined) throw violation(`the request "${method}" before hello`);
    if (!method.startsWith('register-')) return;
    if (method !== `register-${role}`) throw violation(`"${method}" from a ${role}`);
    if (sender !== undefined) throw violation('a second registration');
  }

  private answer(method: string, parameters: WireMessage): unknown {
    const { host } = this;
    switch (method) {
      case 'hello':
        return this.hello(parameters as unknown as HelloRequest);
      case 'register-worker':
        return this.registerWorker(parameters as unknown as RegisterWorkerRequest);
      case 'register-client':
        return this.registerClient(parameters as unknown as RegisterClientRequest);
      case 'who-has':
        return whoHas(host.cluster, parameters as unknown as WhoHasRequest);
      case 'gather':
        return this.gather(parameters as unknown as GatherRequest);
      case 'get-part':
        return this.relay.read(parameters as unknown as GetPartRequest);
      default: {
        const request = parameters as unknown as CommandRequest;
        return host.command(request.command, request.parameters, this.caller());
      }
    }
  }

  private gather({ keys, inParts }: GatherRequest): Promise<GatherReply> {
    return inParts === true ? this.host.gather(keys, this.relay) : this.host.gather(keys);
  }

  private hello({ protocol, role, version }: HelloRequest): HelloReply {
    if (protocol !== PROTOCOL) {
      const error = new YardmasterError(
        'ERR_PROTOCOL',
        `${this.channel.peerAddress} speaks ${protocol} (version ${version}), this scheduler ${PROTOCOL} (version ${VERSION}); install the same version on both sides`,
        { field: 'protocol', theirs: protocol, ours: PROTOCOL },
      );
      queueMicrotask(() => this.refuse(error));
      throw error;
    }
    this.role = role;
    return { protocol: PROTOCOL, version: VERSION, serverId: this.host.serverId };
  }

  private registerWorker(request: RegisterWorkerRequest): RegisterWorkerReply {
    const { host } = this;
    const { address, name } = request.identity;
    this.replaceLost(request.identity);
    if (host.cluster.workers.has(address)) refuseWorker('address', address, address);
    if (host.cluster.aliases.has(name)) refuseWorker('name', name, address);
    this.sender = address;
    host.sessions.workers.set(address, this);
    this.holdUntilAnswered();
    const { identity, status, metrics, held } = request;
    host.enqueue({
      op: 'register-worker',
      identity,
      status,
      ...(metrics === undefined ? {} : { metrics }),
      ...(held === undefined ? {} : { held }),
    });
    const { workerPlugins } = host;
    return {
      heartbeatIntervalMs: heartbeatIntervalMs(host.cluster.workers.size),
      nowMs: host.clock.nowMs(),
      ...(workerPlugins.length === 0 ? {} : { workerPlugins }),
    };
  }

  /** A worker that comes back may have noticed before us that its connection was lost. */
  private replaceLost({ address, serverId }: WorkerIdentity): void {
    const { host } = this;
    if (host.cluster.workers.get(address)?.identity.serverId !== serverId) return;
    const lost = host.sessions.workers.get(address);
    host.sessions.workers.delete(address);
    host.enqueue({ op: 'remove-worker', worker: address, expected: true, close: false });
    lost?.channel.abort(new YardmasterError('ERR_CLOSED', `${address} has connected anew`));
  }

  private registerClient(request: RegisterClientRequest): RegisterClientReply {
    const { host } = this;
    const { client, versions, returnWithinMs = 0 } = request;
    const isBack = returnWithinMs > 0 && this.replaceLostClient(client);
    if (host.cluster.clients.has(client) && !isBack) {
      throw new YardmasterError(
        'ERR_REGISTRATION',
        `there is a client "${client}" already; choose another name`,
        { client },
      );
    }
    this.sender = client;
    this.returnWithinMs = returnWithinMs;
    host.sessions.clients.set(client, this);
    this.holdUntilAnswered();
    if (!isBack) {
      host.enqueue({
        op: 'register-client',
        client,
        ...(versions === undefined ? {} : { versions }),
      });
    }
    const intervalMs = heartbeatIntervalMs(host.sessions.clients.size);
    return { heartbeatIntervalMs: CLIENT_HEARTBEAT_FACTOR * intervalMs };
  }

  /** Whether the client was here, or waited for: then it still has all that it wanted. */
  private replaceLostClient(client: string): boolean {
    const { clients } = this.host.sessions;
    const lost = clients.get(client);
    if (lost === undefined) return this.host.absences.end(client);
    clients.delete(client);
    lost.channel.abort(new YardmasterError('ERR_CLOSED', `${client} has connected anew`));
    return true;
  }

  /** The channel sends the answer when the handler returns; what was caused by it comes after. */
  private holdUntilAnswered(): void {
    this.held = [];
    queueMicrotask(() => {
      const held = this.held ?? [];
      this.held = undefined;
      if (held.length > 0) this.channel.send(...held);
    });
  }

  /** The peer broke the protocol: tell, and end the connection. */
  private refuse(cause: unknown): void {
    if (this.isOver) return;
    const error = YardmasterError.is(cause, 'ERR_PROTOCOL')
      ? new YardmasterError(
          'ERR_PROTOCOL',
          `closed the connection to ${this.sender ?? this.channel.peerAddress}: ${cause.message}`,
          { ...cause.data, peer: this.sender ?? this.channel.peerAddress },
          { cause },
        )
      : new YardmasterError(
          'ERR_PROTOCOL',
          `closed the connection to ${this.sender ?? this.channel.peerAddress}, whose message could not be handled: ${String(cause)}`,
          { peer: this.sender ?? this.channel.peerAddress },
          { cause },
        );
    this.isOver = true;
    this.host.report(error);
    if (this.role === 'worker') {
      this.channel.send({ op: 'close', reason: error.message, stimulusId: 'protocol-error' });
    }
    this.end(); // What was queued, an answer with the error for one, still leaves.
  }
}

function checkEnvelope(message: unknown): void {
  if (!isPlainObject(message)) throw violation('a message that is not an object');
  const { op } = message;
  if (typeof op !== 'string') throw violation('a message without op');
  if (op !== 'request' && op !== 'reply') return;
  if (!Number.isSafeInteger(message['id'])) throw violation(`a ${op} whose id is not a number`);
  if (op === 'request' && !isPlainObject(message['parameters'] ?? {})) {
    throw violation('a request whose parameters are not an object');
  }
}

function violation(what: string): YardmasterError {
  return new YardmasterError('ERR_PROTOCOL', `the peer sent ${what}`, { what });
}

function refuseWorker(field: 'address' | 'name', value: string, address: string): never {
  throw new YardmasterError(
    'ERR_REGISTRATION',
    `there is a worker with the ${field} "${value}" already; stop it, or choose another ${field}`,
    { field, value, worker: address },
  );
}

function whoHas(cluster: ClusterState, { keys }: WhoHasRequest): WhoHasReply {
  return {
    keys,
    whoHas: keys.map((key) =>
      (cluster.tasks.get(key)?.whoHas.items ?? []).map((worker) => worker.address),
    ),
  };
}
