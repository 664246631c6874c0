import { packArguments, unpackWith } from '../../tasks/index.ts';
import { Future, holdingOfFuture } from '../future.ts';
import { allocateWithin, checkFits } from '../message-limit.ts';
import type { Session } from '../session/session.ts';
import { futuresIn } from '../submission/structure.ts';
import { checkNames } from '../submission/options.ts';

/** A value as it travels to the scheduler. */
interface PackedValue {
  readonly value: Uint8Array;
  /** Of the futures inside. */
  readonly keys: readonly string[];
}

/** A value as it comes from the scheduler. */
export interface GivenValue extends PackedValue {
  /** To be confirmed once the futures are held. */
  readonly handover?: number;
}

/** Commands that may take as long as other clients want. */
const MAY_WAIT: ReadonlySet<string> = new Set([
  'acquireLease',
  'acquireLock',
  'getQueue',
  'getVariable',
  'putQueue',
  'waitForEvent',
]);

/** Commands after which the scheduler remembers nothing of the client but leases that it holds and calls that wait. */
const LEAVES_NOTHING: ReadonlySet<string> = new Set([
  'acquireLease',
  'acquireLock',
  'release',
  'renew',
  'lockState',
  'semaphoreState',
  'setEvent',
  'clearEvent',
  'isEventSet',
  'waitForEvent',
  'logEvent',
]);

/** What the parts of coordination need: the session, and a way to call the scheduler. */
export class Coordinator {
  constructor(readonly session: Session) {}

  /** Calls a command of the plugin `coordination`. */
  call<T = unknown>(command: string, parameters: Readonly<Record<string, unknown>>): Promise<T> {
    const { session } = this;
    if (!LEAVES_NOTHING.has(command)) session.mustLeave = true;
    session.bonds++;
    const answer = session.request<T>('command', {
      command: `coordination.${command}`,
      parameters,
    });
    // A subscription stays.
    const end = (): void => {
      session.bonds--;
    };
    if (command !== 'subscribe') answer.then(end, end);
    return MAY_WAIT.has(command) ? session.waiting(answer) : answer;
  }

  /**
   * Stores a value with a call. Its futures are held until the scheduler does.
   * @throws YardmasterError `ERR_NOT_SERIALISABLE`; `ERR_FRAME` when it does not fit into one message
   */
  async send<T>(
    command: string,
    value: unknown,
    parameters: Readonly<Record<string, unknown>>,
  ): Promise<T> {
    this.session.checkOpen();
    const entries = futuresIn(value).map((future) => holdingOfFuture(future).entry);
    const { messageBytesMax } = this.session;
    const what = `the value for "${command}"`;
    const { bytes, dependencies } = packArguments(
      [value],
      (part) => (part instanceof Future ? part.key : undefined),
      allocateWithin(messageBytesMax, what),
    );
    checkFits(bytes.byteLength, messageBytesMax, what);
    for (const entry of entries) entry.references++;
    try {
      const packed: PackedValue = { value: bytes, keys: dependencies };
      return await this.call<T>(command, { ...parameters, ...packed });
    } finally {
      for (const entry of entries) this.session.releaseEntry(entry);
    }
  }

  /** The value, with futures of this client where futures were. */
  receive<T>({ value, handover }: GivenValue): T {
    this.session.checkOpen();
    const [received] = unpackWith(value, (key) => this.futureOf(key));
    if (handover !== undefined) {
      // Sent after the report that this client wants the keys. If the connection ends, the
      // hand-over ends too.
      this.call('received', { handover }).catch(() => undefined);
    }
    return received as T;
  }

  private futureOf(key: string): Future<unknown> {
    const { table, outgoing } = this.session;
    let entry = table.get(key);
    if (entry === undefined) {
      entry = table.add(key, undefined);
      outgoing.report({ op: 'client-desires-keys', keys: [key] });
    }
    return new Future(this.session, entry);
  }
}

/** How long to wait. */
export interface WaitLimit {
  /** Milliseconds; then the call fails with `ERR_TIMEOUT`. 0: not at all. Default: for ever. */
  readonly timeoutMs?: number;
}

/** The parameter of a command, left out when it is for ever. */
export function waitParameters(limit: WaitLimit): { timeoutMs?: number } {
  checkNames(limit, ['timeoutMs']);
  const { timeoutMs = Infinity } = limit;
  return timeoutMs === Infinity ? {} : { timeoutMs };
}
