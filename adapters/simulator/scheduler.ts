import type { Clock, Logger } from '../../core/api/index.ts';
import { byFactory } from '../../core/api/token.ts';
import type { Outbox } from '../../core/kernel/outbox.ts';
import type { SchedulerKernel } from '../../core/kernel/scheduler-kernel.ts';
import { NO_LOG } from '../../core/log/replay.ts';
import { RecordingKernel } from '../../core/log/recording-kernel.ts';
import type { Stimulus } from '../../core/messages/stimulus.ts';
import type { ToClientMessage } from '../../core/messages/to-client.ts';
import type { ToWorkerMessage } from '../../core/messages/to-worker.ts';
import { EVENT_BUS } from '../../core/plugin-host/event-bus.ts';
import { CLOCK, CONFIG } from '../../core/plugin-host/injection/tokens.ts';
import { createScheduler } from '../../core/scheduler-host/create-scheduler.ts';
import { Delivery, DELIVERY } from '../../core/scheduler-host/delivery.ts';
import { EVENT_LOG } from '../../core/scheduler-host/event-log.ts';
import { kernelOptions } from '../../core/scheduler-host/kernel-options.ts';
import { PORTS } from '../../core/scheduler-host/kernel-ports.ts';
import { ERROR_REPORTS } from '../../core/scheduler-host/life/error-reports.ts';
import type { Scheduler } from '../../core/scheduler-host/scheduler.ts';
import { SESSIONS } from '../../core/scheduler-host/sessions/sessions.ts';
import {
  type IncomingStimulus,
  STIMULI,
  STIMULUS_QUEUE,
} from '../../core/scheduler-host/stimulus-queue.ts';
import { KERNEL } from '../../core/scheduler-host/tokens.ts';
import { builtins } from '../app/builtin-extensions.ts';
import type { SimulationOptions } from './options.ts';

/** Takes what a simulated scheduler sends. */
export interface Wire {
  toWorker(address: string, message: ToWorkerMessage): void;
  toClient(client: string, message: ToClientMessage): void;
}

/** The scheduler of a real cluster without connections. */
export interface SimulatedScheduler {
  readonly scheduler: Scheduler;
  readonly kernel: SchedulerKernel;
  /** Stimuli that were handled. */
  readonly stimulusCount: number;
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

/**
 * Starts the scheduler of a real cluster with policies and plugins, whose messages go to a wire.
 * @throws YardmasterError as `createScheduler`
 */
export async function startSimulatedScheduler(
  options: SimulationOptions,
  clock: Clock,
  log: Logger,
  wire: Wire,
): Promise<SimulatedScheduler> {
  let accept: (stimulus: IncomingStimulus) => void = () => undefined;
  let delivery: WireDelivery | undefined;
  const scheduler = await createScheduler({
    ...(options.config === undefined ? {} : { config: options.config }),
    ...(options.overrides === undefined ? {} : { layers: { overrides: options.overrides } }),
    builtins,
    clock,
    log,
    provide: [
      kernelProvider(options),
      byFactory(DELIVERY, (services) => {
        const queue = services.get(STIMULUS_QUEUE);
        accept = (stimulus) => queue.put(stimulus);
        delivery = new WireDelivery(
          wire,
          services.get(SESSIONS),
          services.get(EVENT_BUS),
          services.get(EVENT_LOG),
          services.get(CLOCK),
          services.get(PORTS),
          services.get(STIMULI),
          services.get(ERROR_REPORTS),
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
    accept: (stimulus) => accept(stimulus),
  };
}

/** The kernel does all the work of a stimulus at once: virtual time knows no turns of the event loop. */
function kernelProvider({
  validate,
  makeKernel,
  kernelLog,
}: SimulationOptions): ReturnType<typeof byFactory> {
  return byFactory(KERNEL, (services) => {
    const config = services.get(CONFIG);
    const nowMs = services.get(CLOCK).nowMs();
    const ports = services.get(PORTS).compile();
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
