import { Channel, type ChannelHandlers } from '../api/channel.ts';
import type { Clock } from '../api/clock.ts';
import { named, YardmasterError } from '../api/errors.ts';
import type { ActorCall, Executor, ValueReader } from '../api/executor.ts';
import { VERSION } from '../api/plugin.ts';
import type { Connection, ConnectionHandlers, WireMessage } from '../api/transport.ts';
import { Handshakes } from '../host/handshakes.ts';
import { OutgoingParts, SlowReader, violation } from '../host/sending.ts';
import {
  type GetDataReply,
  type GetPartReply,
  type HelloReply,
  type OfferedParts,
  PROTOCOL,
  type PutDataReply,
  type ShareFileReply,
} from '../messages/protocol.ts';
import { checkedResult, executorName } from '../plugin-host/contracts.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { MEASURED_BYTES_MIN } from '../shared/limits.ts';
import { Waiters } from '../util/promises.ts';
import { CLOCK, SERVER_ID } from '../host/tokens.ts';
import type { WorkerIdentity } from '../state/worker.ts';
import { BytesReader, sharedMemoryOf, valueBytes, withoutSharedMemory } from '../util/bytes.ts';
import { hostOf, isLoopback } from '../util/hosts.ts';
import { WorkerKernel } from '../worker/worker-kernel.ts';
import { resultRunId } from '../worker/worker-task.ts';
import { EXECUTOR, WORKER_IDENTITY, WORKER_OPTIONS } from './tokens.ts';
import { WorkerDescription } from './worker-description.ts';
import { WorkerInbox } from './worker-inbox.ts';
import { takeIn } from './worker-intake.ts';
import { WorkerLink } from './worker-link.ts';
import { WorkerMemory } from './worker-memory.ts';
import type { WorkerHostOptions } from './worker-options.ts';
import { WorkerStatusTracker } from './worker-status.ts';

/** Results beyond this are not part of an answer but offered in parts, if the peer wants it so. */
const ANSWER_BYTES_MAX = 1024 * 1024;

/** Bytes that a peer may ask for to measure the way to it. */
const SENT_BYTES_MAX = 128 * 1024 * 1024;

/** The worker as those that it serves see it. */
interface ServedWorker {
  /** Answers to workers under way, beyond which these are asked to come back. */
  outgoingMax(peerAddress: string): number;
  /** Of the run that computed the result; -1: no run did. */
  runIdOf(key: string): number;
  /** The type of results that all have the same and were computed here. */
  typeOf(keys: readonly string[]): string | undefined;
  /** Takes in what a client has sent. @throws YardmasterError when it refuses */
  putData(keys: readonly string[], values: readonly Uint8Array[], reservation: number): void;
  identity(): WireMessage;
}

/** One that is served. */
interface Guest {
  readonly channel: Channel;
  readonly parts: OutgoingParts;
}

/** The side of a worker that gives results to others. */
@collaborator
export class DataServer {
  private readonly guests = new Set<Guest>();
  private readonly handshakes: Handshakes;
  private readonly idleWaiters = new Waiters();
  /** Answers that have not left this process. */
  private outgoingCount = 0;

  private worker: ServedWorker | undefined;

  constructor(
    @inject(SERVER_ID) private readonly serverId: string,
    @inject(CLOCK) private readonly clock: Clock,
    private readonly memory: WorkerMemory,
    @inject(EXECUTOR) private readonly executor: Executor,
  ) {
    this.handshakes = new Handshakes(clock);
  }

  /** Sets the worker that it serves for; before that, it gives and takes no results. */
  connect(worker: ServedWorker): void {
    this.worker = worker;
  }

  accept(connection: Connection): ConnectionHandlers {
    let isGreeted = false;
    const parts = new OutgoingParts();
    const handlers: ChannelHandlers = {
      onMessage: ({ op, handles }) => {
        if (op === 'drop-parts') parts.drop(handles);
      },
      onRequest: (method, parameters) => {
        if (method === 'hello') {
          const reply = this.hello(parameters);
          isGreeted = true;
          this.handshakes.succeed(connection);
          return reply;
        }
        if (!isGreeted) throw violation(`"${method}" before hello`);
        return this.answer(guest, method, parameters);
      },
      onClose: () => {
        this.handshakes.end(connection);
        this.guests.delete(guest);
        parts.close();
      },
    };
    const channel = new Channel(connection, this.clock, handlers);
    const guest = { channel, parts };
    const reader = new SlowReader(connection, this.clock, (message) => {
      channel.onMessages([message]);
    });
    this.guests.add(guest);
    this.handshakes.begin(connection);
    return {
      onMessages: (batch) => {
        reader.take(batch);
      },
      onClose: (error) => {
        reader.close();
        channel.onClose(error);
      },
    };
  }

  /** Connections that are open, and answers with results that have not left. */
  get counts(): { readonly open: number; readonly sending: number } {
    return { open: this.guests.size, sending: this.outgoingCount };
  }

  /** Waits for what is being fetched, then ends all connections. */
  async close(): Promise<void> {
    await this.idle();
    await Promise.allSettled([...this.guests].map(({ channel }) => channel.close()));
  }

  /** Drops all connections. */
  abort(reason: Error): void {
    for (const { channel } of this.guests) channel.abort(reason);
  }

  private idle(): Promise<void> {
    if (this.outgoingCount === 0) return Promise.resolve();
    return this.idleWaiters.wait();
  }

  private hello({ protocol, version }: WireMessage): HelloReply {
    if (protocol === PROTOCOL) {
      return { protocol: PROTOCOL, version: VERSION, serverId: this.serverId };
    }
    throw new YardmasterError(
      'ERR_PROTOCOL',
      `the peer speaks ${String(protocol)} (version ${String(version)}), this worker ${PROTOCOL} (version ${VERSION}); install the same version on both sides`,
      { theirs: protocol, ours: PROTOCOL },
    );
  }

  private answer(guest: Guest, method: string, parameters: WireMessage): unknown {
    switch (method) {
      case 'get-data':
        return this.getData(guest, parameters);
      case 'get-part':
        return this.getPart(guest, parameters);
      case 'share-file':
        return shareFile(guest.channel, parameters);
      case 'put-data':
        return this.putData(parameters);
      case 'actor-call':
        return answerActorCall(this.executor, parameters);
      case 'send-bytes':
        return { value: someBytes(parameters) };
      case 'identity':
        return this.worker?.identity() ?? {};
    }
    throw violation(`the request "${method}", which workers do not answer`);
  }

  private getData(guest: Guest, parameters: WireMessage): GetDataReply {
    const { keys, mayBeBusy, inParts } = parameters;
    checkKeys('get-data', keys);
    const isBusy = this.outgoingCount >= (this.worker?.outgoingMax(guest.channel.peerAddress) ?? 0);
    if (isBusy && mayBeBusy === true) return { keys: [], values: [], busy: true };
    const transfer = this.beginTransfer();
    const found: string[] = [];
    const values: Uint8Array[] = [];
    const parts: OfferedParts[] = [];
    let roomBytes = inParts === true ? ANSWER_BYTES_MAX : Infinity;
    let totalBytes = 0;
    for (const key of keys) {
      const stored = this.open(key);
      if (stored === undefined) continue;
      const reader = forPeer(stored, guest.channel);
      const { nbytes } = reader;
      totalBytes += nbytes;
      if (nbytes > roomBytes && !isReferring(reader)) {
        transfer.begin();
        const runId = this.runIdOf(key);
        parts.push({ key, nbytes, runId, handle: guest.parts.offer(reader, transfer.end) });
        continue;
      }
      const value = readAll(reader);
      if (value === undefined) continue;
      roomBytes -= nbytes;
      this.memory.moved.sent += nbytes;
      found.push(key);
      values.push(value);
    }
    // The channel sends the answer when this returns; it counts until it has left.
    queueMicrotask(() => void guest.channel.drained().then(transfer.end, transfer.end));
    const runIds = found.map((key) => this.runIdOf(key));
    const type = totalBytes < MEASURED_BYTES_MIN ? undefined : this.worker?.typeOf(keys);
    return {
      ...{ keys: found, values, runIds },
      ...(type === undefined ? {} : { type }),
      ...(parts.length === 0 ? {} : { parts }),
    };
  }

  private runIdOf(key: string): number {
    return this.worker?.runIdOf(key) ?? -1;
  }

  private getPart(guest: Guest, parameters: WireMessage): GetPartReply {
    const reply = guest.parts.read(parameters, guest.channel.memoryFiles);
    const byteLength = reply.bytes?.byteLength ?? 0;
    this.memory.moved.sent += byteLength + (reply.written ?? 0);
    this.memory.noteGarbage(byteLength);
    return reply;
  }

  /** Counts as one answer under way until all that belongs to it has ended. */
  private beginTransfer(): { readonly begin: () => void; readonly end: () => void } {
    let openCount = 1;
    this.outgoingCount++;
    return {
      begin: () => openCount++,
      end: () => {
        if (--openCount > 0) return;
        this.outgoingCount--;
        if (this.outgoingCount === 0) this.idleWaiters.release();
      },
    };
  }

  private open(key: string): ValueReader | undefined {
    const { store } = this.memory;
    if (store.open !== undefined) return store.open(key);
    const value = store.get(key);
    return value === undefined ? undefined : new BytesReader(value);
  }

  private putData({ keys, values, reservation = 0 }: WireMessage): PutDataReply {
    checkKeys('put-data', keys);
    const isComplete =
      Array.isArray(values) &&
      values.length === keys.length &&
      values.every((value) => value instanceof Uint8Array);
    if (!isComplete) throw violation('a put-data whose values do not match its keys');
    const given: readonly Uint8Array[] = values;
    if (!Number.isSafeInteger(reservation)) throw violation('a put-data with a broken reservation');
    this.worker?.putData(keys, given, reservation as number);
    const nbytes = given.map(valueBytes);
    this.memory.moved.received += nbytes.reduce((sum, one) => sum + one, 0);
    return { nbytes };
  }
}

/** The result for a peer: one with shared memory reaches peers of this process as it is, and others as a copy. */
function forPeer(reader: ValueReader, { sharesMemory }: Channel): ValueReader {
  if (sharesMemory || !isReferring(reader)) return reader;
  return new BytesReader(withoutSharedMemory(reader.bytes));
}

function isReferring(reader: ValueReader): reader is BytesReader {
  return reader instanceof BytesReader && sharedMemoryOf(reader.bytes) !== undefined;
}

/** Undefined when it turns out to be damaged. */
function readAll(reader: ValueReader): Uint8Array | undefined {
  try {
    return reader.read(reader.nbytes);
  } catch {
    return undefined; // The store has reported it.
  } finally {
    reader.close();
  }
}

function checkKeys(method: string, keys: unknown): asserts keys is readonly string[] {
  if (Array.isArray(keys) && keys.every((key) => typeof key === 'string')) return;
  throw violation(`a ${method} without keys`);
}

function shareFile({ memoryFiles }: Channel, { path, proof }: WireMessage): ShareFileReply {
  if (typeof path !== 'string' || !(proof instanceof Uint8Array)) {
    throw violation('a share-file without path or proof');
  }
  return { isShared: memoryFiles?.accept({ path, proof }) ?? false };
}

/** For measurements: bytes that mean nothing. */
function someBytes({ nbytes }: WireMessage): Uint8Array {
  const isCount = Number.isInteger(nbytes) && (nbytes as number) >= 0;
  if (isCount && (nbytes as number) <= SENT_BYTES_MAX) return new Uint8Array(nbytes as number);
  throw violation(`a send-bytes without a number of bytes up to ${SENT_BYTES_MAX}`);
}

const OUTGOING_TRANSFERS_MAX = 50;

/** The answers of a worker to peers and clients. */
@collaborator
export class PeerRequests implements ServedWorker {
  constructor(
    server: DataServer,
    @inject(WORKER_OPTIONS) private readonly options: WorkerHostOptions,
    @inject(WORKER_IDENTITY) private readonly worker: WorkerIdentity,
    private readonly kernel: WorkerKernel,
    private readonly memory: WorkerMemory,
    private readonly status: WorkerStatusTracker,
    private readonly inbox: WorkerInbox,
    private readonly link: WorkerLink,
    private readonly description: WorkerDescription,
  ) {
    server.connect(this);
  }

  /**
   * Answers under way at once: one beyond the threshold `pause`, also while it retires, because what it
   * reads from disk for others would fill its memory further. To its own host twice as many as to others.
   */
  outgoingMax(peerAddress: string): number {
    const { isShortOfMemory, status } = this.status;
    if (isShortOfMemory || status === 'paused') return 1;
    const max = this.options.outgoingTransfersMax ?? OUTGOING_TRANSFERS_MAX;
    const host = hostOf(peerAddress);
    return host === this.worker.host || isLoopback(host) ? 2 * max : max;
  }

  runIdOf(key: string): number {
    const task = this.kernel.tables.tasks.get(key);
    return task === undefined ? -1 : resultRunId(task);
  }

  typeOf([first = '', ...others]: readonly string[]): string | undefined {
    const { tasks } = this.kernel.tables;
    const type = tasks.get(first)?.type;
    return others.every((key) => tasks.get(key)?.type === type) ? type : undefined;
  }

  putData(keys: readonly string[], values: readonly Uint8Array[], reservation: number): void {
    const { inbox, link, memory, kernel } = this;
    const stimulusId = link.nameEvent('update-data');
    const free = (outdated: readonly string[]): void => {
      const order = { keys: outdated, reservation: reservation - 1, stimulusId };
      inbox.feed({ op: 'free-keys', ...order });
    };
    takeIn({ tables: kernel.tables, store: memory.store, free }, { keys, values, reservation });
    inbox.feed({
      op: 'update-data',
      keys,
      nbytes: values.map(valueBytes),
      reservation,
      stimulusId,
    });
  }

  identity(): WireMessage {
    return this.description.describe();
  }
}

/**
 * Has an actor of this worker called. What the method throws is part of the answer.
 * @throws YardmasterError `ERR_PROTOCOL` when it is not a call
 */
export async function answerActorCall(
  executor: Executor,
  { key, member, args, actors }: WireMessage,
): Promise<WireMessage> {
  const isCall =
    typeof key === 'string' &&
    typeof member === 'string' &&
    (args === undefined || args instanceof Uint8Array) &&
    (actors === undefined || Array.isArray(actors));
  if (!isCall) throw new YardmasterError('ERR_PROTOCOL', 'the peer sent a broken actor-call');
  if (executor.callActor === undefined) {
    const message = `${executorName(executor)} has no method callActor, so it has no actors; add one`;
    throw new YardmasterError('ERR_EXECUTOR', message);
  }
  const call: ActorCall = {
    key,
    member,
    args,
    ...(actors === undefined ? {} : { actors: actors as NonNullable<ActorCall['actors']> }),
  };
  const what = `the call of ${member} of "${key}"`;
  const failed = `${executorName(executor)} threw at ${what}`;
  const answer = await named(failed, 'ERR_EXECUTOR', () => executor.callActor?.(call));
  const result = checkedResult(executor, answer, what);
  if (result.kind === 'success') return { value: result.value };
  if (result.kind === 'failure') return { error: result.error };
  throw new YardmasterError('ERR_TASK', `${member} of "${key}" asked to be placed anew`);
}
