import { token, type Token } from '../api/plugin.ts';
import type { KernelPorts, PolicyFailure } from '../kernel/ports.ts';
import type { SchedulerKernel } from '../kernel/kernel.ts';
import { busHooks, EVENT_BUS, type EventBus } from '../plugin-host/event-bus.ts';
import { type HookRegistry, HOOKS } from '../plugin-host/hook-table.ts';
import { inject } from '../plugin-host/injection.ts';
import { type PolicySlotTable, SLOTS } from '../plugin-host/policy-slots.ts';
import { ERROR_REPORTS, type ErrorReports } from './error-reports.ts';
import { SHUTDOWN, type Shutdown } from './shutdown.ts';
import { WORKER_CHANNELS, type WorkerChannels } from './worker-channels.ts';
import { type Stimuli, STIMULI, STIMULUS_QUEUE, type StimulusQueue } from './stimulus-queue.ts';
import { KERNEL } from './tokens.ts';

export const PORTS: Token<PortsCompiler> = token('kernel-ports');
export const PORTS_REPLACEMENT: Token<PortsReplacement> = token('ports-replacement');

/**
 * Here injection ends: compiles policies and hooks into one frozen object of functions and arrays, of the
 * same shape every time, so that the calls of the kernel stay fast.
 */
export class PortsCompiler {
  /** The ports that were compiled last. */
  current!: KernelPorts;

  constructor(
    @inject(SLOTS) private readonly slots: PolicySlotTable,
    @inject(HOOKS) private readonly hooks: HookRegistry,
    @inject(EVENT_BUS) private readonly bus: EventBus,
    @inject(WORKER_CHANNELS) private readonly channels: WorkerChannels,
    @inject(ERROR_REPORTS) private readonly errors: ErrorReports,
  ) {}

  /** @throws YardmasterError `ERR_SLOT` when a slot has no provider */
  compile(): KernelPorts {
    const { slots } = this;
    this.errors.policiesChanged();
    const own = busHooks(this.bus, (address) => this.channels.drop(address, 'the worker left'));
    this.current = Object.freeze({
      workerSelection: slots.inCharge('workerSelection'),
      queuing: slots.inCharge('queuing'),
      ordering: slots.inCharge('ordering'),
      fairness: slots.inCharge('fairness'),
      fallbacks: slots.fallbacks,
      hooks: this.hooks.compile(own),
      onPolicyFailure: ({ error, slot }: PolicyFailure) => this.errors.policyFailed(error, slot),
    });
    return this.current;
  }
}

/** Gives the kernel new ports, between two stimuli, when plugins or policies have changed. */
export class PortsReplacement {
  private isDue = false;

  constructor(
    @inject(PORTS) private readonly ports: PortsCompiler,
    @inject(KERNEL) private readonly kernel: SchedulerKernel,
    @inject(STIMULUS_QUEUE) private readonly queue: StimulusQueue,
    @inject(STIMULI) private readonly stimuli: Stimuli,
    @inject(SHUTDOWN) private readonly shutdown: Shutdown,
  ) {}

  request(): void {
    if (this.queue.isStopped || this.isDue) return;
    this.isDue = true;
    this.queue.between(() => this.replace());
  }

  private replace(): void {
    this.isDue = false;
    try {
      this.kernel.replacePorts(this.ports.compile());
    } catch (cause) {
      this.shutdown.stopBecause('the policies could not be replaced', cause);
      return;
    }
    const { unrunnable, queued } = this.kernel.cluster;
    if (unrunnable.size + queued.size > 0) this.stimuli.accept({ op: 'policies-replaced' });
  }
}
