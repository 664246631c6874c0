import type { Clock } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import type { WireMessage } from '../api/transport.ts';
import type { LoggedEvent, Outbox } from '../kernel/outbox.ts';
import type { Stimulus } from '../messages/stimulus.ts';
import { reportNumber } from '../messages/operations.ts';
import { type CancelledKeys, type ToClientMessage, UNKNOWN_KEY } from '../messages/to-client.ts';
import type { FreeKeys, ToWorkerMessage } from '../messages/to-worker.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { CLOCK } from '../host/tokens.ts';
import { EVENT_BYTES_MAX } from '../shared/limits.ts';
import type { ClientState } from '../state/task.ts';
import { approximateBytes } from '../util/bytes.ts';
import { cut } from '../util/values.ts';
import { DataReservations } from './data-reservations.ts';
import { ErrorReports } from './error-reports.ts';
import { EventLog } from './event-log.ts';
import { PortsCompiler } from './kernel-ports.ts';
import { type Peer, Sessions } from './sessions.ts';
import { failureReport } from './stimulus-queue.ts';
import { STIMULI, type Stimuli } from './tokens.ts';
import { pushTo } from '../util/collections.ts';

/** Delivers the outbox of a stimulus: messages to their sessions, events to their listeners. */
@collaborator
export class Delivery {
  private readonly freed = new FreedKeys();
  private readonly cancellations = new Cancellations();

  constructor(
    private readonly sessions: Sessions,
    private readonly eventLog: EventLog,
    @inject(CLOCK) private readonly clock: Clock,
    private readonly ports: PortsCompiler,
    @inject(STIMULI) private readonly stimuli: Stimuli,
    private readonly errors: ErrorReports,
    private readonly reservations: DataReservations,
  ) {}

  /** @param cause - what the messages follow from */
  deliver({ toWorkers, toClients, events }: Outbox, cause: Stimulus): void {
    if (toWorkers.length > 0) this.deliverToWorkers(toWorkers, cause);
    const { clients } = this.sessions;
    if ('client' in cause) {
      const sender = clients.get(cause.client);
      if (sender !== undefined) {
        const number = reportNumber(cause.client, cause.stimulusId);
        sender.handledReport = number ?? sender.handledReport;
      }
    }
    for (const { client, message } of toClients) {
      const session = clients.get(client.key);
      const told =
        message.op === 'cancelled-keys' ? this.cancellations.tell(client, message) : [message];
      if (session === undefined) continue;
      for (const each of told)
        this.trySend(session, withNumber(withValue(each, cause), session.handledReport));
    }
    for (const event of events) this.publish(event, cause);
  }

  private deliverToWorkers(messages: Outbox['toWorkers'], cause: Stimulus): void {
    const { freed, reservations } = this;
    const { workers } = this.sessions;
    for (const { worker, message: decided } of messages) {
      const session = workers.get(worker.address);
      if (session === undefined) continue;
      const message = reservations.order(worker, decided);
      if (message === undefined) continue;
      if (isMereFreeing(message)) {
        freed.add(session, message);
        continue;
      }
      if (!freed.isEmpty) freed.sendTo(session, cause);
      const failed = this.trySend(session, message);
      if (failed !== undefined && message.op === 'compute-task') {
        this.stimuli.accept(failureReport(worker.address, message, failed));
      }
      if (message.op === 'close') session.end();
    }
    if (!freed.isEmpty) freed.sendAll(cause);
  }

  private publish({ topic, message: logged }: LoggedEvent, cause: Stimulus): void {
    const message = cause.op === 'log-event' ? withinLimit(logged) : logged;
    this.eventLog.publish(topic, message, this.clock.nowMs());
    for (const hook of this.ports.current.hooks.eventLogged) hook(topic, message);
  }

  /** Sends a message. What came from outside can travel again; what a plugin enqueued perhaps cannot. */
  private trySend(session: Peer, message: object): YardmasterError | undefined {
    try {
      session.send(message as WireMessage);
      return undefined;
    } catch (thrown) {
      const error = YardmasterError.is(thrown)
        ? thrown
        : new YardmasterError('ERR_NOT_SERIALISABLE', String(thrown), {}, { cause: thrown });
      this.errors.report(error);
      return error;
    }
  }
}

/** The news of a result, with the result if that came along: it passes by the kernel, not through it. */
function withValue(message: ToClientMessage, cause: Stimulus): ToClientMessage {
  if (message.op !== 'key-in-memory' || cause.op !== 'task-finished') return message;
  const { value, key, worker } = cause;
  // Other news that follows from the same event is of other results, or of an earlier run's.
  if (value === undefined || message.key !== key || !message.workers.includes(worker))
    return message;
  const { op, nbytes, workers, type } = message;
  // Not by copying the message: to add to a copy costs a microsecond.
  const size = nbytes === undefined ? undefined : { nbytes };
  return { op, key, type, ...size, workers, value };
}

/** Says which reports of the client were handled before, so that what it has asked for since then is not meant. */
function withNumber(message: ToClientMessage, after: number | undefined): ToClientMessage {
  if (after === undefined) return message;
  switch (message.op) {
    case 'key-in-memory': {
      const { op, key, nbytes, workers, type, value } = message;
      const size = nbytes === undefined ? undefined : { nbytes };
      const bytes = value === undefined ? undefined : { value };
      return {
        op,
        key,
        ...(type === undefined ? undefined : { type }),
        ...size,
        workers,
        ...bytes,
        after,
      };
    }
    case 'task-erred':
    case 'cancelled-keys':
    case 'restart':
      return { ...message, after };
    case 'lost-data':
    case 'task-retried':
    case 'data-refused':
      return message;
  }
}

/** An event of a peer that is too large is published without what it says. */
function withinLimit(message: unknown): unknown {
  if (approximateBytes(message, EVENT_BYTES_MAX) <= EVENT_BYTES_MAX) return message;
  const reason = `an event of more than ${EVENT_BYTES_MAX} bytes was left out`;
  return { action: 'event-left-out', reason };
}

/** Cancelled keys of one client; the reasons of the older half are dropped when there are more. */
const CANCELLATIONS_MAX = 100_000;
/** Characters of a reason, and of a message, that are kept for a client that is away. */
const KEPT_TEXT_MAX = 1000;

/**
 * The reasons why the latest keys of clients were cancelled. A client that did not hear of it, because its connection
 * broke or the scheduler ended, asks for the keys when it is back: it must not take for lost, and submit again, what
 * was given up. A scheduler that reads its journal learns the reasons anew.
 */
class Cancellations {
  private readonly byClient = new WeakMap<ClientState, { told: CancelledKeys[]; count: number }>();

  /** Returns what the client is to be told: of keys that are unknown by now, the reason for that. */
  tell(client: ClientState, message: CancelledKeys): readonly CancelledKeys[] {
    const known = this.byClient.get(client);
    if (message.reason === UNKNOWN_KEY) {
      return known === undefined ? [message] : withReasons(message, known.told);
    }
    const { told, count } = known ?? { told: [], count: 0 };
    told.push(shortened(message));
    let kept = count + message.keys.length;
    if (kept > CANCELLATIONS_MAX)
      for (const { keys } of told.splice(0, told.length >> 1)) kept -= keys.length;
    this.byClient.set(client, { told, count: kept });
    return [message];
  }
}

/** It is kept for each key, and people may have written much. */
function shortened(told: CancelledKeys): CancelledKeys {
  const { reason, message } = told;
  if (reason.length + (message?.length ?? 0) <= KEPT_TEXT_MAX) return told;
  const short = { ...told, reason: cut(reason, KEPT_TEXT_MAX) };
  return message === undefined ? short : { ...short, message: cut(message, KEPT_TEXT_MAX) };
}

/** O(keys that were told). */
function withReasons(
  message: CancelledKeys,
  told: readonly CancelledKeys[],
): readonly CancelledKeys[] {
  const latest = new Map<string, CancelledKeys>();
  for (const each of told) for (const key of each.keys) latest.set(key, each);
  const byReason = new Map<CancelledKeys, string[]>();
  for (const key of message.keys) {
    const reason = latest.get(key) ?? message;
    pushTo(byReason, reason, key);
  }
  return Array.from(byReason, ([reason, keys]) => ({ ...reason, keys }));
}

/**
 * The keys that one stimulus lets workers free: one message for each worker, where the kernel has one for each key.
 * A client that releases ten thousand results at once costs ten messages then, and as many confirmations.
 */
class FreedKeys {
  private readonly byWorker = new Map<Peer, string[]>();
  /** That of all orders of one stimulus. */
  private reservation: number | undefined;

  get isEmpty(): boolean {
    return this.byWorker.size === 0;
  }

  add(worker: Peer, { keys, reservation }: FreeKeys): void {
    this.reservation = reservation;
    const freed = this.byWorker.get(worker);
    if (freed === undefined) this.byWorker.set(worker, [...keys]);
    else for (const key of keys) freed.push(key);
  }

  /** Sends what this worker may free, since something else follows for it. */
  sendTo(worker: Peer, cause: Stimulus): void {
    const keys = this.byWorker.get(worker);
    if (keys === undefined) return;
    this.byWorker.delete(worker);
    const { reservation } = this;
    const latest = reservation === undefined ? {} : { reservation };
    worker.send({ op: 'free-keys', keys, ...latest, stimulusId: cause.stimulusId });
  }

  /** The stimulus has nothing more to say. */
  sendAll(cause: Stimulus): void {
    for (const worker of this.byWorker.keys()) this.sendTo(worker, cause);
  }
}

/** True when the message frees keys and says nothing else about them. */
function isMereFreeing(message: ToWorkerMessage): message is FreeKeys {
  return (
    message.op === 'free-keys' &&
    message.runIds === undefined &&
    message.killTimeoutMs === undefined
  );
}
