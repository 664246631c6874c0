import type { KernelPorts, PolicyFailure } from '../kernel/ports.ts';
import { SchedulerKernel } from '../kernel/kernel.ts';
import { derivedHooks, EventBus, HookRegistry } from '../plugin-host/hooks.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { PolicySlotTable } from '../plugin-host/policy-slots.ts';
import { ErrorReports } from './error-reports.ts';
import { Shutdown } from './shutdown.ts';
import { WorkerChannels } from './worker-channels.ts';
import { StimulusQueue } from './stimulus-queue.ts';
import { type Stimuli, STIMULI } from './tokens.ts';

/**
 * Here injection ends: compiles policies and hooks into one frozen object of functions and arrays, of the
 * same shape every time, so that the calls of the kernel stay fast.
 */
@collaborator
export class PortsCompiler {
  /** The ports that were compiled last. */
  current!: KernelPorts;

  constructor(
    private readonly slots: PolicySlotTable,
    private readonly hooks: HookRegistry,
    private readonly bus: EventBus,
    private readonly channels: WorkerChannels,
    private readonly errors: ErrorReports,
  ) {}

  /** @throws YardmasterError `ERR_SLOT` when a slot has no provider */
  compile(): KernelPorts {
    const { slots } = this;
    this.errors.policiesChanged();
    const own = derivedHooks(this.hooks, this.bus, (address) =>
      this.channels.drop(address, 'the worker left'),
    );
    this.current = Object.freeze({
      workerSelection: slots.inCharge('workerSelection'),
      queuing: slots.inCharge('queuing'),
      ordering: slots.inCharge('ordering'),
      fairness: slots.inCharge('fairness'),
      rules: slots.rules,
      fallbacks: slots.fallbacks,
      hooks: this.hooks.compile(own),
      onPolicyFailure: (failure: PolicyFailure) => this.errors.policyFailed(failure),
    });
    return this.current;
  }
}

/** Gives the kernel new ports, between two stimuli, when plugins or policies have changed. */
@collaborator
export class PortsReplacement {
  private isDue = false;

  constructor(
    private readonly ports: PortsCompiler,
    private readonly kernel: SchedulerKernel,
    private readonly queue: StimulusQueue,
    @inject(STIMULI) private readonly stimuli: Stimuli,
    private readonly shutdown: Shutdown,
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
