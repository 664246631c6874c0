import { SLOT_NAMES } from '../api/policies.ts';
import type { Problem, Segment } from './errors.ts';
import { isPlainObject } from '../util/plain-object.ts';

/**
 * Brings every place where an extension is named into one form, `{ use, options }`:
 *
 * - only a name: `plugins: [metrics]`
 * - in code, the thing itself: `plugins: [counter]`, `plugins: [new Counter()]`
 * - Dask's spelling of a policy of the memory manager: `class:` with the options inline; and of its
 *   measure: `managed_in_memory`
 * - Dask's `false` for thresholds and limits of the memory of workers
 *
 * Entries without a valid form stay as they are, and the schema reports them.
 */
export function normaliseEntries(root: unknown): { value: unknown; problems: Problem[] } {
  const problems: Problem[] = [];
  const withMemory = within(root, 'worker', (worker) =>
    within(worker, 'memory', (memory) => withoutFalse(memory, problems)),
  );
  const withWorkers = within(withMemory, 'worker', (worker) =>
    ['plugins', 'preload', 'nannyPlugins', 'nannyPreload'].reduce<unknown>(
      (changed, field) => within(changed, field, (items) => each(items, plain)),
      worker,
    ),
  );
  const value = within(withWorkers, 'scheduler', (scheduler) => {
    let result = within(scheduler, 'transport', plain);
    for (const field of ['plugins', 'preload']) {
      result = within(result, field, (items) => each(items, plain));
    }
    for (const field of ['policies', 'shadows']) {
      result = within(result, field, (policies) =>
        SLOT_NAMES.reduce<unknown>((changed, slot) => within(changed, slot, plain), policies),
      );
    }
    result = within(result, 'clientPolicies', (slots) =>
      SLOT_NAMES.reduce<unknown>(
        (changed, slot) => within(changed, slot, (offered) => eachValue(offered, plain)),
        slots,
      ),
    );
    result = within(result, 'rebalance', (rules) => within(rules, 'measure', daskMeasure));
    return within(result, 'activeMemoryManager', (manager) =>
      within(within(manager, 'measure', daskMeasure), 'policies', (items) =>
        each(items, (item, index) => {
          const at = [...AMM_POLICIES, index];
          const entry = daskOrPlain(item, at, problems);
          refuseRetireWorker(entry, at, problems);
          return entry;
        }),
      ),
    );
  });
  return { value, problems };
}

const THRESHOLDS = ['target', 'spill', 'pause', 'terminate', 'transfer'];

/** False means that there is none: a threshold of 0, a limit of Infinity. */
function withoutFalse(memory: unknown, problems: Problem[]): unknown {
  const limited = within(memory, 'maxSpill', (value) => (value === false ? null : value));
  return THRESHOLDS.reduce<unknown>((changed, name) => {
    return within(changed, name, (value) => {
      if (value !== true) return value === false ? 0 : value;
      const at = ['worker', 'memory', name];
      problems.push({ at, message: 'must be a number from 0 to 1, or false (got true)' });
      return 0;
    });
  }, limited);
}

const AMM_POLICIES = ['scheduler', 'activeMemoryManager', 'policies'];

function plain(item: unknown): unknown {
  return typeof item === 'string' || isExtension(item) ? { use: item } : item;
}

function daskOrPlain(item: unknown, at: readonly Segment[], problems: Problem[]): unknown {
  if (!isPlainObject(item) || !('class' in item) || isExtension(item)) return plain(item);
  if ('use' in item || 'options' in item) {
    problems.push({
      at: [...at, 'class'],
      message: 'cannot stand next to use or options; with class the options are inline',
      aboutKey: true,
    });
  }
  const { class: use, ...options } = item;
  return { use, options };
}

/** What is no name, such as the class itself in code, the plugin `amm` refuses when it loads it. */
const RETIRE_WORKER = /^(retire-worker|distributed\.active_memory_manager\.RetireWorker)$/;

function refuseRetireWorker(item: unknown, at: readonly Segment[], problems: Problem[]): void {
  const use = isPlainObject(item) ? item['use'] : undefined;
  if (typeof use !== 'string' || !RETIRE_WORKER.test(use)) return;
  problems.push({
    at,
    message: `must not name ${use}: retireWorkers adds it, one for each worker that leaves, and it leaves by itself; remove the entry`,
  });
}

/** `unmanaged_old` is unmanagedOld; older releases said managed_in_memory and managed_spilled. */
function daskMeasure(name: unknown): unknown {
  if (typeof name !== 'string') return name;
  const words = name.replaceAll('-', '_');
  if (words === 'managed_in_memory') return 'managed';
  if (words === 'managed_spilled') return 'spilled';
  return words.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** Whether it is the thing itself: a class, an instance, or a definition. */
function isExtension(item: unknown): boolean {
  if (typeof item === 'function') return true;
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return false;
  if (!isPlainObject(item)) return true;
  if ('use' in item) return false;
  return typeof item['kind'] === 'string' || Object.values(item).some(isFunction);
}

function each(items: unknown, change: (item: unknown, index: number) => unknown): unknown {
  return Array.isArray(items) ? items.map(change) : items;
}

function eachValue(items: unknown, change: (item: unknown) => unknown): unknown {
  if (!isPlainObject(items)) return items;
  return Object.fromEntries(Object.entries(items).map(([name, item]) => [name, change(item)]));
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function';
}

/** A copy of an object in which one field is replaced, if it has that field. */
function within(root: unknown, key: string, change: (value: unknown) => unknown): unknown {
  if (!isPlainObject(root) || !Object.hasOwn(root, key)) return root;
  return { ...root, [key]: change(root[key]) };
}
