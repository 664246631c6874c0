import { type Clock, type Timer, YardmasterError } from '../../../core/api/index.ts';
import type { Fields } from '../context.ts';
import { TurnEnd } from '../../../core/shared/turn.ts';

/** An event for the hooks of scheduler plugins: its name, then what the hook needs. */
export type CompanionEvent = readonly [name: string, ...fields: unknown[]];

/** What the outbox does with the process and the cluster. */
interface OutboxPort {
  readonly clock: Clock;
  /** Writes one message to the process. */
  send(message: Fields): void;
  /** Stops, or starts again, the reading from those peers that cause events. */
  holdPeers(isHeld: boolean): void;
  /** The process is of no more use. */
  giveUp(reason: YardmasterError): void;
}

/** Limits of {@link Outbox}. */
interface OutboxLimits {
  /** Events that the process may have without having handled them. */
  readonly window: number;
  /** Number of waiting events at which peers are paused; they resume at half of it. */
  readonly holdAt: number;
  /** Waiting events at which the process is given up: some peers cannot be held. */
  readonly max: number;
  /** How long the process may handle no event while peers are held, in milliseconds. */
  readonly stallMs: number;
}

const LIMITS: OutboxLimits = { window: 1024, holdAt: 50_000, max: 500_000, stallMs: 60_000 };

/** Events of one message. */
const BATCH_MAX = 256;
/** Handled entries are cut off when there are this many. */
const CUT_AT = 4096;

/**
 * Events and requests for the companion, in the order in which they happened. At most `window` events
 * are in the process; the others wait here, and when too many wait, the peers that cause them do.
 */
export class Outbox {
  private entries: (CompanionEvent | Fields)[] = [];
  /** Entries before it have been sent. */
  private next = 0;
  private unhandled = 0;
  private isPlanned = false;
  private isHolding = false;
  private isClosed = false;
  private stallTimer: Timer | undefined;
  private readonly turnEnd = new TurnEnd();

  constructor(
    private readonly port: OutboxPort,
    private readonly limits: OutboxLimits = LIMITS,
  ) {}

  /** Entries that have not been sent. */
  get waiting(): number {
    return this.entries.length - this.next;
  }

  addEvent(event: CompanionEvent): void {
    if (this.isClosed) return;
    this.entries.push(event);
    this.limit();
    if (this.isPlanned) return;
    this.isPlanned = true;
    this.turnEnd.add(() => {
      this.isPlanned = false;
      this.flush();
    });
  }

  /** A request, behind all events that were added before. */
  addRequest(message: Fields): void {
    this.entries.push(message);
    this.flush();
  }

  /** The process has handled this many events. */
  handled(count: number): void {
    this.unhandled -= count;
    this.flush();
    this.limit();
    if (this.isHolding) this.watchStall();
  }

  close(): void {
    this.isClosed = true;
    this.entries = [];
    this.next = 0;
    this.hold(false);
  }

  private flush(): void {
    while (this.next < this.entries.length) {
      const entry = this.entries[this.next] as CompanionEvent | Fields;
      if (!isEvent(entry)) {
        this.next++;
        this.port.send(entry);
        continue;
      }
      const free = Math.min(BATCH_MAX, this.limits.window - this.unhandled);
      if (free <= 0) break;
      const events = this.takeEvents(free);
      this.unhandled += events.length;
      this.port.send({ op: 'events', events });
    }
    if (this.next < CUT_AT && this.next < this.entries.length) return;
    this.entries = this.entries.slice(this.next);
    this.next = 0;
  }

  private takeEvents(max: number): CompanionEvent[] {
    const events: CompanionEvent[] = [];
    while (events.length < max) {
      const entry = this.entries[this.next];
      if (entry === undefined || !isEvent(entry)) break;
      events.push(entry);
      this.next++;
    }
    return events;
  }

  private limit(): void {
    const { waiting, limits } = this;
    if (waiting >= limits.max) {
      this.port.giveUp(
        new YardmasterError(
          'ERR_TIMEOUT',
          `the plugins in Python fell behind: ${waiting} events wait for them`,
          { waiting },
        ),
      );
    } else if (waiting >= limits.holdAt) this.hold(true);
    else if (waiting <= limits.holdAt / 2) this.hold(false);
  }

  private hold(isHeld: boolean): void {
    if (this.isHolding === isHeld) return;
    this.isHolding = isHeld;
    this.port.holdPeers(isHeld);
    if (isHeld) this.watchStall();
    else this.stallTimer?.cancel();
  }

  private watchStall(): void {
    const { clock } = this.port;
    const { stallMs } = this.limits;
    this.stallTimer?.cancel();
    this.stallTimer = clock.setTimer(stallMs, () => {
      const message = `the plugins in Python have handled no event for ${stallMs / 1000} s`;
      this.port.giveUp(new YardmasterError('ERR_TIMEOUT', message, { stallMs }));
    });
  }
}

function isEvent(entry: CompanionEvent | Fields): entry is CompanionEvent {
  return Array.isArray(entry);
}
