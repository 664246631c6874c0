/**
 * What is handled next of all that has arrived: in the order of its arrival, by chance, or by random priorities that
 * change at a few random moments (probabilistic concurrency testing; Burckhardt et al., ASPLOS 2010). What must stay in
 * order is the messages of one connection in one direction: they are what a thread is there.
 */
import type {
  Connection,
  ConnectionHandlers,
  Listener,
  Transport,
} from '../../../core/api/index.ts';
import type { VirtualClock } from '../../../adapters/clocks/virtual-clock.ts';
import type { Dice } from '../dice.ts';

type Open = (connection: Connection) => ConnectionHandlers;
type Step = () => void;

/** The schedules, by name. */
export const SCHEDULES = ['arrival', 'uniform', 'pct'] as const;
export type Schedule = (typeof SCHEDULES)[number];

/** Steps among which the changes of priorities are drawn. */
const STEPS = 1500;

/** One direction of one connection: the steps that are due there. */
class Mailbox {
  steps: Step[] = [];
  priority: number;

  constructor(
    priority: number,
    readonly onStep: (mailbox: Mailbox) => void,
  ) {
    this.priority = priority;
  }

  add(step: Step): void {
    this.steps.push(step);
    this.onStep(this);
  }
}

/** Lets one step happen at a time. */
export class Delivery {
  /** Those with steps that are due. */
  private readonly due = new Set<Mailbox>();
  private isArmed = false;
  private steps = 0;
  private readonly stepMs: number;
  /** Numbers of the steps before which the mailbox that would be next falls behind all others. */
  private readonly changes = new Set<number>();

  constructor(
    readonly schedule: Schedule,
    private readonly clock: VirtualClock,
    private readonly dice: Dice,
  ) {
    this.stepMs = dice.oneOf([0, 0, 0.2]);
    const depth = dice.between(1, 5);
    const horizon = dice.oneOf([STEPS / 10, STEPS]);
    for (let change = 1; change < depth; change++) this.changes.add(dice.between(0, horizon));
  }

  /** A network on which all that arrives waits for its turn. */
  over(inner: Transport): Transport {
    if (this.schedule === 'arrival') return inner;
    return {
      scheme: inner.scheme,
      listen: (address, accept): Promise<Listener> => inner.listen(address, this.inTurn(accept)),
      connect: (address, open, options) => inner.connect(address, this.inTurn(open), options),
    };
  }

  private inTurn(open: Open): Open {
    return (connection) => {
      const mailbox = new Mailbox(this.dice.next(), (due) => this.note(due));
      const scheduled = new Proxy(connection, {
        get: (target, name) => {
          const value: unknown = Reflect.get(target, name);
          if (typeof value !== 'function') return value;
          return (...given: unknown[]): unknown => {
            if (name === 'abort') mailbox.steps = [];
            return Reflect.apply(value, target, given);
          };
        },
      });
      const handlers = open(scheduled);
      return {
        onMessages: (batch) => {
          mailbox.add(() => {
            try {
              handlers.onMessages(batch);
            } catch (error) {
              scheduled.abort(error as Error);
            }
          });
        },
        onClose: (error) => {
          mailbox.add(() => {
            if (error === undefined) handlers.onClose();
            else handlers.onClose(error);
          });
        },
      };
    };
  }

  private note(mailbox: Mailbox): void {
    this.due.add(mailbox);
    this.arm();
  }

  private arm(): void {
    if (this.isArmed || this.due.size === 0) return;
    this.isArmed = true;
    this.clock.setTimer(this.stepMs, () => {
      this.isArmed = false;
      this.step();
      this.arm();
    });
  }

  private step(): void {
    let next = this.choose();
    if (this.schedule === 'pct' && this.changes.has(this.steps) && next !== undefined) {
      next.priority = -this.steps;
      next = this.choose();
    }
    this.steps++;
    if (next === undefined) return;
    const step = next.steps.shift();
    if (next.steps.length === 0) this.due.delete(next);
    step?.();
  }

  private choose(): Mailbox | undefined {
    const due = [...this.due];
    if (this.schedule === 'uniform') return this.dice.oneOf(due);
    return due.reduce<Mailbox | undefined>(
      (best, each) => (best === undefined || each.priority > best.priority ? each : best),
      undefined,
    );
  }
}
