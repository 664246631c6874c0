import { Channel, type ChannelHandlers } from '../api/channel.ts';
import type { Clock, Timer } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import { type Caller, type NewStimulus, VERSION } from '../api/plugin.ts';
import type {
  Connection,
  ConnectionHandlers,
  IncomingLimits,
  WireMessage,
} from '../api/transport.ts';
import type { Config } from '../config/types.ts';
import type { Handshakes } from '../host/handshakes.ts';
import { SlowReader, violation } from '../host/sending.ts';
import {
  type Committed,
  type GatherReply,
  type GatherRequest,
  type HelloReply,
  type HelloRequest,
  PROTOCOL,
  type RegisterClientReply,
  type RegisterClientRequest,
  type RegisterWorkerReply,
  type RegisterWorkerRequest,
  type Role,
  type SchedulerRequests,
} from '../messages/protocol.ts';
import { type Access, reportNumber } from '../messages/operations.ts';
import type {
  ClientMessage,
  ClientReport,
  GraphPart,
  SubmittedGraph,
} from '../messages/stimulus.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { CLOCK, CONFIG, SERVER_ID } from '../host/tokens.ts';
import { setAwakeTimer } from '../shared/timers.ts';
import { ClusterState } from '../state/cluster.ts';
import { ClientQueues } from './client-queues.ts';
import { Commands } from './commands.ts';
import { GraphParts } from './data-reservations.ts';
import { ErrorReports } from './error-reports.ts';
import { Gatherer, PartsRelay } from './gatherer.ts';
import { JOURNAL, type SchedulerJournal } from './journal.ts';
import {
  admitClient,
  admitWorker,
  clientLeft,
  enterClient,
  enterWorker,
  SessionSecret,
  WorkerLosses,
  workerLeft,
} from './membership.ts';
import { ReconnectGrace } from './reconnect-grace.ts';
import {
  checkClientReport,
  checkRequest,
  checkWorkerReport,
  closedOn,
  isBreach,
  isPartOfRequest,
  otherProtocol,
} from './message-checks.ts';
import { checkHello, checkQuestion, checkReport } from './permissions.ts';
import { NannyPluginRegistry, WorkerPluginRegistry } from './remote-plugin-registry.ts';
import { type Peer, Sessions } from './sessions.ts';
import { StimulusQueue } from './stimulus-queue.ts';
import { type Stimuli, STIMULI } from './tokens.ts';

/** Time for a peer that has said hello to register. */
const REGISTRATION_MS = 60_000;

/** For clients that have not registered, and viewers: they ask, and send nothing large. */
const LOOKER_LIMITS: IncomingLimits = { frameBytesMax: 1024 * 1024, valuesMax: 100_000 };

type Method = keyof SchedulerRequests;

/** The fields that a session writes into a message. */
interface Stamped {
  worker?: string;
  client?: string;
  stimulusId?: string;
}

/**
 * One connection to the scheduler, from its first message to its end. It checks each message
 * from another process, and stamps each with the sender, so that no peer can send in the name of another.
 */
export class Session implements Peer, ChannelHandlers {
  readonly channel: Channel;
  private role: Role | undefined;
  /** Address of the worker or key of the client, once registered. */
  private sender: string | undefined;
  handledReport?: number | undefined;
  secret: SessionSecret | undefined;
  /** Set while the answer to the registration has not left; messages have to come after it. */
  private held: WireMessage[] | undefined;
  /** Milliseconds within which a client whose connection broke may come back. */
  private returnWithinMs = 0;
  /** A client wants to know which of its reports are in the journal. */
  private wantsCommits = false;
  private isOver = false;
  /** Closes a connection that is of no use: without a registration, and without a request. */
  private registrationTimer: Timer | undefined;
  private hasAsked = false;
  /** The channel has closed the connection; nothing that came before its end counts. */
  private isBroken = false;
  private readonly relay = new PartsRelay();
  /** The peer runs this package in this process: what it sends was checked where it was made. */
  private readonly isTrusted: boolean;
  private readonly parts: GraphParts;
  private readonly slowReader: SlowReader;

  private readonly answers: {
    readonly [M in Method]: (asked: SchedulerRequests[M]) => unknown;
  } = {
    hello: (asked) => this.hello(asked),
    ping: () => ({}),
    'register-worker': (asked) => this.registerWorker(asked),
    'register-client': (asked) => this.registerClient(asked),
    'who-has': (asked) => this.host.gatherer.whoHas(asked),
    gather: (asked) => this.gather(asked),
    'get-part': (asked) => this.relay.read(asked),
    command: (asked) => this.host.commands.run(asked.command, asked.parameters, this.caller()),
  };

  /** @param handshakes - limits the peer until its hello; undefined within the process */
  constructor(
    private readonly connection: Connection,
    private readonly host: SessionServices,
    private readonly handshakes?: Handshakes,
  ) {
    this.channel = new Channel(connection, host.clock, this);
    this.isTrusted = connection.sharesMemory === true;
    this.parts = new GraphParts(host.config.scheduler.limits.graph);
    this.slowReader = new SlowReader(connection, host.clock, (message) => this.receive(message));
    host.sessions.all.add(this);
    handshakes?.begin(connection);
  }

  /** The handlers that the transport calls. */
  get handlers(): ConnectionHandlers {
    return {
      onMessages: (batch) => {
        // The reports of workers never wait: they say that the worker lives.
        if (this.role === 'worker') for (const message of batch) this.receive(message);
        else this.slowReader.take(batch);
      },
      onClose: (error) => this.channel.onClose(error),
    };
  }

  /** Requests and answers are the channel's. */
  private receive(message: WireMessage): void {
    if (this.isOver || this.isBroken) return;
    try {
      if (isPartOfRequest(message)) {
        this.channel.onMessages([message]);
        this.isBroken = this.channel.isClosed;
      } else this.onMessage(message);
    } catch (error) {
      this.refuse(error);
    }
  }

  send(message: WireMessage): void {
    if (this.held !== undefined) this.held.push(message);
    // Memory may be freed with the next task; a write for it alone would delay that.
    else if (message['op'] === 'free-keys') this.channel.sendLater(message);
    else if (this.slowReader.admits()) this.connection.send(message);
  }

  commit(upTo: number): void {
    if (this.wantsCommits) this.send({ op: 'committed', upTo } satisfies Committed);
  }

  endCommits(): void {
    if (!this.wantsCommits) return;
    this.send({ op: 'committed', upTo: 0, isOver: true } satisfies Committed);
    this.wantsCommits = false;
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
      if (!this.isTrusted) checkWorkerReport(message);
      (message as Stamped).worker = sender;
      this.stamp(message);
      // What workers report never waits behind a large graph.
      this.host.queue.put(message as unknown as NewStimulus);
    } else {
      checkReport(this.connection.peerRole, message['op'] as string);
      if (!this.isTrusted) checkClientReport(message);
      this.stamp(message);
      this.takeMessage(message as unknown as ClientMessage, sender);
    }
  }

  private takeMessage(report: ClientMessage, client: string): void {
    const { op } = report;
    if (op === 'drop-parts') this.relay.drop(report);
    else if (op === 'close-client') this.returnWithinMs = 0;
    else if (op === 'graph-part') {
      const refused = this.parts.add(report);
      if (refused.length > 0) this.refuseKeys(client, report, refused, this.parts.tooLarge);
    } else if (op === 'update-graph') {
      const { tasks, keys, refusal } = this.parts.end(report);
      if (refusal !== undefined) this.refuseKeys(client, report, keys, refusal);
      // What came in one piece is not copied: it may be one of very many small graphs.
      else this.take(tasks === report.tasks ? report : { ...report, tasks, keys }, client);
    } else this.take(report, client);
  }

  private refuseKeys(
    client: string,
    { op, stimulusId }: GraphPart | SubmittedGraph,
    keys: readonly string[],
    reason: string,
  ): void {
    // The report that ends with this counts as written with the release.
    const id = op === 'update-graph' ? { stimulusId } : {};
    this.host.stimuli.accept({ op: 'client-releases-keys', client, keys, ...id });
    const after = reportNumber(client, stimulusId);
    this.send({ op: 'cancelled-keys', keys, reason, ...(after === undefined ? {} : { after }) });
  }

  private take(report: ClientReport, client: string): void {
    const message = report as unknown as WireMessage & Stamped;
    message.client = client;
    this.host.stimuli.accept(message as unknown as NewStimulus);
  }

  /** A message belongs to its receiver: it becomes the stimulus itself, not a copy. */
  private stamp(message: WireMessage): void {
    if (message['stimulusId'] === undefined || message['stimulusId'] === '') {
      (message as Stamped).stimulusId = this.host.queue.nextId(message['op'] as string);
    }
  }

  onRequest(name: string, parameters: WireMessage): unknown {
    const method = name as Method;
    try {
      if (!this.isTrusted) checkRequest(name, parameters);
      this.admit(method);
    } catch (error) {
      queueMicrotask(() => this.refuse(error)); // After the answer, which says the same.
      throw error;
    }
    if (method === 'ping') return {};
    this.hasAsked ||= method !== 'hello';
    checkQuestion(
      this.connection.peerRole,
      method,
      method === 'command' ? this.commandIn(parameters) : undefined,
    );
    // Doors of plugins open before the journal is read, and their peers would get what it says of those before them.
    const { reading } = this.host.journal;
    if (reading !== undefined && method.startsWith('register-')) {
      return reading.then(() => this.answerLater(method, parameters));
    }
    // A question comes after all that was said before it.
    const settled = this.host.clientQueues.settled(this.sender ?? '');
    if (settled === undefined) return this.answer(method, parameters);
    return settled.then(() => this.answerLater(method, parameters));
  }

  private commandIn(parameters: WireMessage): { readonly name: string; readonly access: Access } {
    const name = parameters['command'] as string;
    return { name, access: this.host.commands.accessOf(name) };
  }

  /** Refused when the peer has left meanwhile: its reservations, which ended with it, must not begin anew. */
  private answerLater(method: Method, parameters: WireMessage): unknown {
    if (this.isOver)
      throw new YardmasterError('ERR_CLOSED', 'the peer left before it was answered');
    this.admit(method);
    return this.answer(method, parameters);
  }

  onClose(error?: Error): void {
    // What broke below the messages (a frame, the form of a request) was not reported by `refuse`.
    if (!this.isOver && isBreach(error)) this.host.errors.report(error);
    this.isOver = true;
    this.handshakes?.end(this.connection);
    this.registrationTimer?.cancel();
    this.slowReader.close();
    this.relay.close();
    const { host, sender } = this;
    host.sessions.all.delete(this);
    if (sender === undefined) return;
    const seats = this.role === 'worker' ? host.sessions.workers : host.sessions.clients;
    if (seats.get(sender) !== this) return; // It has connected anew.
    seats.delete(sender);
    if (this.role === 'worker') workerLeft(host, sender, error);
    else clientLeft(host, sender, this.returnWithinMs, this.secret);
  }

  private caller(): Caller {
    const { role, sender } = this;
    if (sender === undefined) return {};
    return role === 'worker' ? { worker: sender } : { client: sender };
  }

  /** Checks that the peer may make the request now. */
  private admit(method: Method): void {
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

  private answer(method: Method, parameters: WireMessage): unknown {
    const answer = this.answers[method] as (asked: unknown) => unknown;
    return answer(parameters);
  }

  private gather({ keys, inParts }: GatherRequest): Promise<GatherReply> {
    return this.host.gatherer.gather(keys, inParts === true ? this.relay : undefined);
  }

  private hello({ protocol, role, version }: HelloRequest): HelloReply {
    if (protocol !== PROTOCOL) {
      const error = otherProtocol(this.channel.peerAddress, protocol, version);
      queueMicrotask(() => this.refuse(error));
      throw error;
    }
    try {
      checkHello(this.connection.peerRole, role);
    } catch (error) {
      queueMicrotask(() => this.refuse(error));
      throw error;
    }
    this.role = role;
    this.handshakes?.succeed(this.connection, role === 'client' ? LOOKER_LIMITS : undefined);
    if (role !== 'peer') this.awaitRegistration();
    return { protocol: PROTOCOL, version: VERSION, serverId: this.host.serverId };
  }

  /** Otherwise a connection that says hello and nothing else would stay open for ever. */
  private awaitRegistration(): void {
    this.registrationTimer = setAwakeTimer(this.host.clock, REGISTRATION_MS, () => {
      if (this.sender === undefined && !this.hasAsked) {
        this.refuse(violation(`nothing for ${REGISTRATION_MS / 1000} s after its hello`));
      }
    });
  }

  private registerWorker(request: RegisterWorkerRequest): RegisterWorkerReply {
    const { host } = this;
    admitWorker(host, request, this.connection.peerAddress);
    this.keepSecret(request.secret);
    this.bindPeer(host.sessions.workers, request.identity.address);
    return enterWorker(host, request);
  }

  private registerClient(request: RegisterClientRequest): RegisterClientReply {
    const { host } = this;
    const admitted = admitClient(host, request);
    this.returnWithinMs = request.returnWithinMs ?? 0;
    this.keepSecret(request.secret);
    this.wantsCommits = host.journal.isOn && request.wantsCommits === true;
    this.bindPeer(host.sessions.clients, request.client);
    // Those that look only keep the limits.
    if (this.connection.peerRole !== 'viewer') this.connection.limitIncoming?.(undefined);
    const reply = enterClient(host, request, admitted);
    return this.connection.peerRole === 'viewer' ? { ...reply, onlyLooks: true } : reply;
  }

  private keepSecret(secret: string | undefined): void {
    if (secret !== undefined) this.secret = new SessionSecret(secret);
  }

  /** The channel sends the answer when the handler returns; what is caused by it comes after. */
  private bindPeer(seats: Map<string, Peer>, name: string): void {
    this.sender = name;
    this.registrationTimer?.cancel();
    seats.set(name, this);
    this.held = [];
    queueMicrotask(() => {
      const held = this.held ?? [];
      this.held = undefined;
      if (held.length > 0) this.channel.sendAll(held);
    });
  }

  /** Handles a protocol error of the peer: reports it and ends the connection. */
  private refuse(cause: unknown): void {
    if (this.isOver) return;
    const error = closedOn(this.sender ?? this.channel.peerAddress, cause);
    this.isOver = true;
    this.host.errors.report(error);
    if (this.role === 'worker') {
      this.channel.send({ op: 'close', reason: error.message, stimulusId: 'protocol-error' });
    }
    this.end(); // What was queued, an answer with the error for one, still leaves.
  }
}

/** The collaborators that every session uses. */
@collaborator
export class SessionServices {
  constructor(
    @inject(SERVER_ID) readonly serverId: string,
    @inject(CLOCK) readonly clock: Clock,
    readonly cluster: ClusterState,
    readonly sessions: Sessions,
    readonly reconnectGrace: ReconnectGrace,
    readonly losses: WorkerLosses,
    readonly workerPlugins: WorkerPluginRegistry,
    readonly nannyPlugins: NannyPluginRegistry,
    @inject(STIMULI) readonly stimuli: Stimuli,
    readonly queue: StimulusQueue,
    readonly clientQueues: ClientQueues,
    readonly commands: Commands,
    readonly gatherer: Gatherer,
    readonly errors: ErrorReports,
    @inject(JOURNAL) readonly journal: SchedulerJournal,
    @inject(CONFIG) readonly config: Config,
  ) {}
}
