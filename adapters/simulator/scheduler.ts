import type { Clock, Logger, YardmasterError } from '../../core/api/index.ts';
import { byFactory, type Provider, type Services } from '../../core/api/token.ts';
import { SchedulerKernel } from '../../core/kernel/kernel.ts';
import type { Outbox } from '../../core/kernel/outbox.ts';
import type { KernelPorts, PolicyFailure } from '../../core/kernel/ports.ts';
import { RecordingKernel } from '../../core/log/recording-kernel.ts';
import { NO_LOG } from '../../core/log/replay.ts';
import type { Stimulus } from '../../core/messages/stimulus.ts';
import type { ToClientMessage } from '../../core/messages/to-client.ts';
import type { ToWorkerMessage } from '../../core/messages/to-worker.ts';
import { EventBus, HookRegistry } from '../../core/plugin-host/hooks.ts';
import { CLOCK, CONFIG, LOGGER } from '../../core/host/tokens.ts';
import { PolicySlotTable } from '../../core/plugin-host/policy-slots.ts';
import { Delivery } from '../../core/scheduler-host/delivery.ts';
import { DataReservations } from '../../core/scheduler-host/data-reservations.ts';
import { ErrorReports } from '../../core/scheduler-host/error-reports.ts';
import { EventLog } from '../../core/scheduler-host/event-log.ts';
import { PortsCompiler } from '../../core/scheduler-host/kernel-ports.ts';
import type { Scheduler } from '../../core/scheduler-host/scheduler.ts';
import { Sessions } from '../../core/scheduler-host/sessions.ts';
import { StimulusQueue } from '../../core/scheduler-host/stimulus-queue.ts';
import { type IncomingStimulus, kernelOptions, STIMULI } from '../../core/scheduler-host/tokens.ts';
import { WorkerChannels } from '../../core/scheduler-host/worker-channels.ts';
import type { SimulationOptions } from './options.ts';

/** Takes what a simulated scheduler sends. */
interface Wire {
  toWorker(address: string, message: ToWorkerMessage): void;
  toClient(client: string, message: ToClientMessage): void;
}

/** The scheduler of a real cluster without connections. */
export interface SimulatedScheduler {
  readonly scheduler: Scheduler;
  readonly kernel: SchedulerKernel;
  /** Stimuli that were handled. */
  readonly stimulusCount: number;
  /** The number of failures of policies, and the policy that was of no use. */
  readonly fallbacks: { readonly count: number; readonly useless: string | undefined };
  accept(stimulus: IncomingStimulus): void;
}

/** Takes messages out of the outbox; events go their usual way. */
class WireDelivery extends Delivery {
  stimulusCount = 0;

  constructor(
    private readonly wire: Wire,
    ...collaborators: ConstructorParameters<typeof Delivery>
  ) {
    super(...collaborators);
  }

  override deliver({ toWorkers, toClients, events }: Outbox, cause: Stimulus): void {
    this.stimulusCount++;
    for (const { worker, message } of toWorkers) this.wire.toWorker(worker.address, message);
    for (const { client, message } of toClients) this.wire.toClient(client.key, message);
    if (events.length > 0) super.deliver({ toWorkers: [], toClients: [], events }, cause);
  }
}

/** Counts how often policies failed. */
class FallbackTally extends ErrorReports {
  /** Of all policies. */
  count = 0;
  private readonly answered = new Set<PolicyFailure['question']>();
  private readonly failures = new Map<PolicyFailure['question'], YardmasterError>();

  override policyJudged(question: PolicyFailure['question'], failure?: YardmasterError): void {
    if (failure === undefined) {
      this.answered.add(question);
      return;
    }
    this.count++;
    if (!this.failures.has(question)) this.failures.set(question, failure);
  }

  /** As the kernel calls it, with a count of what it asks. */
  ports(compiled: KernelPorts): KernelPorts {
    return { ...compiled, onPolicyAnswer: (question) => this.policyJudged(question) };
  }

  /** The failure of a policy that failed each time that it was asked one of its questions, if there is such a policy. */
  get useless(): string | undefined {
    for (const [question, { message }] of this.failures) {
      if (!this.answered.has(question)) return `${message}; so it was each time`;
    }
    return undefined;
  }
}

class TallyingPorts extends PortsCompiler {
  constructor(
    private readonly tally: FallbackTally,
    ...collaborators: ConstructorParameters<typeof PortsCompiler>
  ) {
    super(...collaborators);
  }

  override compile(): KernelPorts {
    this.current = Object.freeze(this.tally.ports(super.compile()));
    return this.current;
  }
}

/** Makes the scheduler with these parts in the place of its own. */
export type MakeScheduler = (given: {
  readonly clock: Clock;
  readonly log: Logger;
  readonly provide: readonly Provider[];
}) => Promise<Scheduler>;

/**
 * Starts the scheduler of a real cluster with policies and plugins, whose messages go to a wire.
 * @throws YardmasterError as what makes the scheduler
 */
export async function startSimulatedScheduler(
  options: SimulationOptions,
  { clock, log, wire }: { readonly clock: Clock; readonly log: Logger; readonly wire: Wire },
  make: MakeScheduler,
): Promise<SimulatedScheduler> {
  let accept: (stimulus: IncomingStimulus) => void = () => undefined;
  let delivery: WireDelivery | undefined;
  let tally: FallbackTally | undefined;
  const tallyOf = (services: Services): FallbackTally =>
    (tally ??= new FallbackTally(services.get(LOGGER), services.get<HookRegistry>(HookRegistry)));
  const scheduler = await make({
    clock,
    log,
    provide: [
      kernelProvider(options),
      byFactory(ErrorReports, tallyOf),
      byFactory(PortsCompiler, (services) => {
        const errors = tallyOf(services);
        const [slots, hooks] = [
          services.get(PolicySlotTable),
          services.get<HookRegistry>(HookRegistry),
        ];
        const channels = services.get(WorkerChannels);
        return new TallyingPorts(errors, slots, hooks, services.get(EventBus), channels, errors);
      }),
      byFactory(Delivery, (services) => {
        const queue = services.get(StimulusQueue);
        accept = (stimulus) => queue.put(stimulus);
        delivery = new WireDelivery(
          wire,
          services.get(Sessions),
          services.get(EventLog),
          services.get(CLOCK),
          services.get(PortsCompiler),
          services.get(STIMULI),
          services.get(ErrorReports),
          services.get(DataReservations),
        );
        return delivery;
      }),
    ],
  });
  return {
    scheduler,
    kernel: scheduler.kernel,
    get stimulusCount() {
      return delivery?.stimulusCount ?? 0;
    },
    get fallbacks() {
      return { count: tally?.count ?? 0, useless: tally?.useless };
    },
    accept: (stimulus) => accept(stimulus),
  };
}

/** The kernel does all the work of a stimulus at once: virtual time knows no turns of the event loop. */
function kernelProvider({
  validate,
  makeKernel,
  kernelLog,
}: SimulationOptions): ReturnType<typeof byFactory> {
  return byFactory(SchedulerKernel, (services) => {
    const config = services.get(CONFIG);
    const nowMs = services.get(CLOCK).nowMs();
    const ports = services.get(PortsCompiler).compile();
    const own = kernelOptions(config);
    const chosen = {
      ...own,
      sliceTransitions: Infinity,
      ...(validate === undefined ? {} : { validate }),
    };
    if (makeKernel !== undefined) return makeKernel(chosen, ports, nowMs);
    return new RecordingKernel(chosen, ports, nowMs, kernelLog?.(config) ?? NO_LOG);
  });
}

/** The state of the result of a wanted key. */
type KeyStatus = 'pending' | 'memory' | 'failed' | 'cancelled';

/** A client that wants results, and waits for all of them. */
export class SimulatedClient {
  /** Wanted keys without a result or an error. */
  openCount = 0;
  failedCount = 0;
  /** The time at which the message that was sent last arrives. */
  lastNewsMs = 0;
  /** The first failure of a key, for people. */
  firstFailure: string | undefined;
  private readonly keys = new Map<string, KeyStatus>();

  /** @param settled - called when the number of open keys changes to or from 0 */
  constructor(
    readonly name: string,
    private readonly settled: (isSettled: boolean) => void,
  ) {}

  want(keys: readonly string[]): void {
    for (const key of keys) {
      if (!this.keys.has(key)) this.set(key, 'pending');
    }
  }

  statusOf(key: string): KeyStatus | undefined {
    return this.keys.get(key);
  }

  get wanted(): readonly string[] {
    return [...this.keys.keys()];
  }

  take(message: ToClientMessage): void {
    switch (message.op) {
      case 'key-in-memory':
        this.set(message.key, 'memory');
        return;
      case 'lost-data':
      case 'task-retried':
        this.set(message.key, 'pending');
        return;
      case 'task-erred':
        this.firstFailure ??= `${message.key}: ${message.failure.exceptionText}`;
        this.set(message.key, 'failed');
        return;
      case 'cancelled-keys':
      case 'data-refused':
        for (const key of message.keys) this.set(key, 'cancelled');
        return;
      case 'restart':
        for (const key of this.keys.keys()) this.set(key, 'cancelled');
        return;
    }
  }

  private set(key: string, status: KeyStatus): void {
    const before = this.keys.get(key);
    if (before === status) return;
    this.keys.set(key, status);
    if (status === 'failed') this.failedCount++;
    if (before === 'failed') this.failedCount--;
    const openBefore = this.openCount;
    if (status === 'pending') this.openCount++;
    if (before === 'pending') this.openCount--;
    if (openBefore === 0 && this.openCount > 0) this.settled(false);
    if (openBefore > 0 && this.openCount === 0) this.settled(true);
  }
}
