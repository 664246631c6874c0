import type { ExtensionKind } from '../../api/plugin.ts';
import { methodNamesOf } from '../hook-names.ts';

/**
 * What something is that is no extension of any kind, and what to do with it instead: the end of a
 * message that refuses it. Undefined: it may be an extension.
 */
export function adviceAgainst(exported: unknown, kinds: readonly string[]): string | undefined {
  if (exported === undefined || exported === null) {
    return `it is ${String(exported)}; is its import right?`;
  }
  if (Array.isArray(exported)) return 'it is a list; give its entries one by one';
  if (exported instanceof Promise) return 'it is a promise: await it first';
  if (isExecutor(exported)) {
    return 'it is an executor, which a worker gets: startWorker(address, { executor })';
  }
  if (Object.prototype.toString.call(exported) === '[object Module]') return MODULE;
  return isPlain(exported) ? adviceAgainstPlain(exported, kinds) : undefined;
}

const MODULE = 'it is a module: give one of its exports, such as its default export';

function adviceAgainstPlain(
  fields: Readonly<Record<string, unknown>>,
  kinds: readonly string[],
): string | undefined {
  const { kind } = fields;
  if (typeof kind === 'string' && !kinds.includes(kind)) {
    return `its kind is "${kind}"; there are ${kinds.join(', ')}`;
  }
  if ('name' in fields) return undefined;
  if ('use' in fields) return 'it is an entry of a configuration: give what its "use" names';
  if ('default' in fields) return MODULE;
  if (isPlain(fields['scheduler']) || isPlain(fields['worker'])) {
    return 'it is a configuration, which a scheduler gets when it is made: createScheduler({ config })';
  }
  return undefined;
}

/** How a program gives an extension that it has in code. */
export const CALLS: Readonly<Record<ExtensionKind, string>> = {
  plugin: 'scheduler.addPlugin(plugin)',
  'worker-plugin': 'startWorker(address, { plugins })',
  'nanny-plugin': 'startWorker(address, { nannyPlugins })',
  policy: 'scheduler.replacePolicy(slot, policy)',
  'amm-policy': 'scheduler.amm.addPolicy(policy)',
  transport: 'createScheduler({ transports })',
};

function isExecutor(exported: unknown): boolean {
  const prototype: unknown = typeof exported === 'function' ? exported.prototype : exported;
  if (typeof prototype !== 'object' || prototype === null) return false;
  const methods = methodNamesOf(prototype);
  const isOne = 'threadCount' in prototype || methods.includes('callActor');
  return isOne && methods.includes('run') && methods.includes('close');
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  return (
    typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
  );
}
