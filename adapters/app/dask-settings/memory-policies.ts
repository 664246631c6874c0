import type { DaskConfig } from '../../dask/config/index.ts';
import type { SettingsBuilder } from './settings-builder.ts';

const KEY = 'distributed.scheduler.active-memory-manager.policies';
const PLACE = ['scheduler', 'activeMemoryManager', 'policies'];
const MODULE = 'distributed.active_memory_manager.';

/** Dask's own policies under our names. */
const POLICIES: ReadonlyMap<string, string> = new Map([
  [`${MODULE}ReduceReplicas`, 'reduce-replicas'],
]);

/**
 * The policies of Dask's Active Memory Manager. Its own ones have equivalents; classes of other packages
 * are Python, and are ignored by name. A path such as `./policies/pin.js` names one of ours.
 */
export function takeMemoryPolicies(config: DaskConfig, builder: SettingsBuilder): void {
  const entry = config.find(KEY);
  if (entry === undefined) return;
  if (!Array.isArray(entry.value)) {
    builder.markTaken(entry, []);
    if (entry.value !== null) builder.addProblem(entry, 'must be a list of policies with "class"');
    return;
  }
  const policies: object[] = [];
  for (const item of entry.value as readonly unknown[]) {
    const { class: name, ...options } = (item ?? {}) as Record<string, unknown>;
    if (typeof name !== 'string') {
      builder.markTaken(entry, []);
      builder.addProblem(entry, 'must name each policy as "class: package.module.Class"');
      return;
    }
    const use = POLICIES.get(name) ?? (/^[\w]+(\.\w+)+$/.test(name) ? undefined : name);
    if (use !== undefined) policies.push({ class: use, ...options });
    else builder.ignore({ ...entry, value: name }, reasonOf(name));
  }
  builder.takeAt(entry, PLACE, () => policies);
}

function reasonOf(name: string): string {
  if (name === `${MODULE}RetireWorker`) {
    return `${name} is no policy for a configuration; retire_workers starts it`;
  }
  return `the policy ${name} is a Python class; write it in JavaScript (docs/policies.md), and name its file in the own configuration`;
}
