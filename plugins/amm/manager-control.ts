import {
  type ActiveMemoryManager,
  type ActiveMemoryManagerPolicy,
  type AmmPolicyClass,
  type AmmPolicyInfo,
  type AmmRound,
  type AmmStatus,
  BRIDGE,
  type Clock,
  type ClosableWorkers,
  type ClusterView,
  type Logger,
  MEMORY_MEASURES,
  type MemoryMeasure,
  type PendingReplicas,
  type PluginContext,
  type Retirement,
  type TaskView,
  type Timer,
  type WorkerView,
  YardmasterError,
} from '../../core/api/index.ts';
import { original, readOnly } from '../../core/shared/read-only.ts';
import { workersToClose } from '../../policies/scaling/adaptive.ts';
import { makePolicy, type MemoryManager } from './memory-manager.ts';

type Policy = ActiveMemoryManagerPolicy<unknown>;
type Options = Readonly<Record<string, unknown>>;

/** Settings of the manager that can be changed while it runs; times in milliseconds. */
interface ManagerSettings {
  intervalMs: number;
  measure: MemoryMeasure;
}

/** The manager of a scheduler as plugins, clients, the program around it and policies use it. */
export class ManagerControl implements ActiveMemoryManager {
  // Not a field that `Object.freeze` would freeze.
  #timer: Timer | undefined;
  private readonly infos = new WeakMap<Policy, AmmPolicyInfo>();
  private readonly counts = new Map<string, number>();

  /**
   * @param settings - shared with the manager, which reads them
   * @param own - belongs to the manager and is never removed
   * @param onRunning - it was started or stopped
   * @param retireNow - not to be called within a round, because it begins one
   */
  constructor(
    private readonly context: PluginContext,
    private readonly manager: MemoryManager,
    private readonly settings: ManagerSettings,
    private readonly own: Policy,
    private readonly onRunning: () => void,
    private readonly retireNow: (worker: WorkerView) => Promise<Retirement>,
  ) {
    manager.view = this;
    manager.policies.add(own);
    this.register(own, 'keep-replicas', {});
    Object.freeze(this); // Policies share it.
  }

  // ---- as policies see it --------------------------------------------------------------------

  get cluster(): ClusterView {
    return readOnly(this.manager.cluster);
  }

  get scheduler(): ClusterView {
    return this.cluster;
  }

  get workersMemory(): ReadonlyMap<WorkerView, number> {
    return readOnly(this.manager.workersMemory);
  }

  get pending(): ReadonlyMap<TaskView, PendingReplicas> {
    return readOnly(this.manager.pending);
  }

  get policies(): Set<Policy> {
    return this.manager.policies;
  }

  copies(task: TaskView): number {
    return this.manager.copies(original(task));
  }

  get clock(): Clock {
    return this.context.clock;
  }

  get log(): Logger {
    return this.context.log;
  }

  workersToClose(options: ClosableWorkers = {}): readonly WorkerView[] {
    return workersToClose(this.manager.cluster, options).map((worker) => readOnly(worker));
  }

  retire(worker: WorkerView): Promise<Retirement> {
    const outcome = new Promise<void>((resolve) => {
      this.clock.setTimer(0, resolve);
    }).then(() => this.retireNow(original(worker)));
    outcome.catch(() => undefined); // A policy need not await it.
    return outcome;
  }

  // ---- how it runs ---------------------------------------------------------------------------

  get intervalMs(): number {
    return this.settings.intervalMs;
  }

  set intervalMs(value: number) {
    if (!Number.isFinite(value) || value < 1) {
      throw refused('intervalMs', value, 'must be a number of milliseconds, at least 1');
    }
    this.settings.intervalMs = value;
    if (this.#timer === undefined) return;
    this.#timer.cancel();
    this.#timer = this.makeTimer();
  }

  get measure(): MemoryMeasure {
    return this.settings.measure;
  }

  set measure(value: MemoryMeasure) {
    if (!MEMORY_MEASURES.includes(value)) {
      throw refused('measure', value, `must be one of ${MEMORY_MEASURES.join(', ')}`);
    }
    this.settings.measure = value;
  }

  get running(): boolean {
    return this.#timer !== undefined;
  }

  start(): void {
    if (this.#timer !== undefined) return;
    this.#timer = this.makeTimer();
    this.onRunning();
  }

  stop(): void {
    if (this.#timer === undefined) return;
    this.#timer.cancel();
    this.#timer = undefined;
    this.onRunning();
  }

  runOnce(): AmmRound {
    return this.manager.runOnce();
  }

  get status(): AmmStatus {
    const { running, intervalMs, measure } = this;
    const { lastRound, moved } = this.manager;
    const round = lastRound === undefined ? {} : { lastRound };
    const moves = [...moved.values()];
    return { running, intervalMs, measure, policies: this.listPolicies(), moves, ...round };
  }

  // ---- its policies --------------------------------------------------------------------------

  async addPolicy(
    policy: string | AmmPolicyClass | Policy,
    options?: Options,
  ): Promise<AmmPolicyInfo> {
    const entry = options === undefined ? { use: policy } : { use: policy, options };
    const loaded = await this.context.get(BRIDGE).load(entry);
    return this.adopt(makePolicy(loaded), policy, loaded.options);
  }

  /**
   * Adds a policy that was loaded.
   * @param use - as it was named, or given in code
   */
  adopt(policy: Policy, use: unknown, options: Options): AmmPolicyInfo {
    this.manager.policies.add(policy);
    const name = typeof use === 'string' ? use : policy.constructor.name;
    return this.register(policy, name, typeof use === 'object' ? undefined : options);
  }

  removePolicy(policy: string | Policy): readonly AmmPolicyInfo[] {
    const all = [...this.manager.policies];
    const chosen = all.filter((one) => {
      const { id, name } = this.infoOf(one);
      return one === policy || id === policy || name === policy;
    });
    const removable = chosen.filter((one) => one !== this.own);
    if (removable.length === 0) throw this.notRemovable(policy, chosen.length > 0);
    for (const one of removable) this.manager.policies.delete(one);
    return removable.map((one) => this.infoOf(one));
  }

  listPolicies(): readonly AmmPolicyInfo[] {
    return [...this.manager.policies].map((policy) => this.infoOf(policy));
  }

  private notRemovable(policy: string | Policy, isOwn: boolean): YardmasterError {
    const name = typeof policy === 'string' ? policy : policy.constructor.name;
    const ids = this.listPolicies().map(({ id }) => id);
    const why = isOwn
      ? `the policy "${name}" belongs to the memory manager and cannot be removed: it keeps the copies that were asked for`
      : `the memory manager has no policy "${name}"; it has ${ids.join(', ')}`;
    return new YardmasterError('ERR_PLUGIN_LOAD', why, { policy: name });
  }

  /** Policies can also be put into the set directly. */
  private infoOf(policy: Policy): AmmPolicyInfo {
    return this.infos.get(policy) ?? this.register(policy, policy.constructor.name, undefined);
  }

  private register(policy: Policy, name: string, options: Options | undefined): AmmPolicyInfo {
    const known = this.infos.get(policy);
    if (known !== undefined) return known;
    const count = (this.counts.get(name) ?? 0) + 1;
    this.counts.set(name, count);
    const info = { id: `${name}-${count}`, name, options };
    this.infos.set(policy, info);
    return info;
  }

  private makeTimer(): Timer {
    return this.context.every(this.settings.intervalMs, () => void this.manager.runOnce());
  }
}

function refused(field: string, value: unknown, rule: string): YardmasterError {
  return new YardmasterError(
    'ERR_CONFIG',
    `${field} of the memory manager ${rule} (got ${String(value)})`,
    { field },
  );
}
