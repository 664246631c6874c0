import type { Clock } from '../api/clock.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { CLOCK } from '../host/tokens.ts';
import type { Instruction, WorkerEvent } from '../worker/events.ts';
import { WorkerKernel } from '../worker/worker-kernel.ts';

/** The consumer of the kernel's instructions. */
export interface InstructionConsumer {
  carryOut(instruction: Instruction): void;
  /** The kernel, or an instruction, threw. */
  onBroken(cause: unknown): void;
}

/**
 * Events on their way to the machine of a worker. They are handled in the order in which they came, as
 * many at a time as there are, and what they cause is carried out before the next ones are handled.
 */
@collaborator
export class WorkerInbox {
  private readonly events: WorkerEvent[] = [];
  private state: 'new' | 'open' | 'closed' = 'new';
  private isDraining = false;
  private isDrainDue = false;

  private consumer: InstructionConsumer | undefined;

  constructor(
    private readonly kernel: WorkerKernel,
    @inject(CLOCK) private readonly clock: Clock,
  ) {}

  /** Sets what carries out the instructions. */
  connect(consumer: InstructionConsumer): void {
    this.consumer = consumer;
  }

  /** True when events are handled: not before {@link open}, nor after {@link close}. */
  get isOpen(): boolean {
    return this.state === 'open';
  }

  /** Opens the inbox. Events that have come so far wait for {@link drain}. */
  open(): void {
    if (this.state === 'new') this.state = 'open';
  }

  close(): void {
    this.state = 'closed';
  }

  /** Waits for whatever drains the inbox next: the end of a batch of messages, as a rule. */
  put(event: WorkerEvent): void {
    this.events.push(event);
  }

  /** Handles it at once; called while others are handled, after them. */
  feed(event: WorkerEvent): void {
    this.events.push(event);
    this.drain();
  }

  /** Handles it with all that ends in the same turn. */
  feedSoon(event: WorkerEvent): void {
    this.events.push(event);
    if (this.isDrainDue) return;
    this.isDrainDue = true;
    queueMicrotask(() => {
      this.isDrainDue = false;
      this.drain();
    });
  }

  /** Handles what has come; what that causes at once is handled too, after it. */
  drain(): void {
    const { kernel, clock, consumer } = this;
    if (this.isDraining || consumer === undefined) return;
    this.isDraining = true;
    try {
      while (this.isOpen && this.events.length > 0) {
        const events = this.events.splice(0);
        const instructions = kernel.handleAll(events, clock.nowMs());
        for (const instruction of instructions) consumer.carryOut(instruction);
      }
    } catch (cause) {
      consumer.onBroken(cause);
    } finally {
      this.isDraining = false;
    }
  }
}
