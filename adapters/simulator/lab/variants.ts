import { extname, resolve } from 'node:path';
import {
  type PolicyDefinition,
  SLOT_NAMES,
  type SlotName,
  YardmasterError,
} from '../../../core/api/index.ts';
import { PluginResolver } from '../../../core/plugin-host/plugin-resolver.ts';
import { hint } from '../../../core/shared/words.ts';
import type { ConfigInput } from '../../app/config.ts';
import type { PlannerName } from './offline.ts';

/** The policies that are built in, the default of each slot first. */
export const BUILTIN_POLICIES: Readonly<Record<SlotName, readonly string[]>> = {
  workerSelection: ['earliest-start', 'balanced', 'locality-first'],
  queuing: ['root-ish', 'co-assign', 'family', 'direct', 'mars'],
  ordering: ['depth-first', 'dask', 'mars', 'fifo', 'best'],
  fairness: ['fifo', 'weighted-fair-share'],
  stealing: ['dask', 'calm'],
};

/** The default, and every other built-in policy alone in its slot. */
export const SINGLE_POLICIES: readonly string[] = [
  'default',
  ...Object.entries(BUILTIN_POLICIES).flatMap(([slot, [, ...others]]) =>
    others.map((policy) => `${slot}/${policy}`),
  ),
];

/** Policies that are compared with others. */
export interface PolicyVariant {
  readonly name: string;
  /** Path of a configuration. */
  readonly config?: string;
  readonly overrides?: ConfigInput;
  /** True when it consists of policies of this package alone. */
  readonly isBuiltin?: boolean;
  /** A planner that knows everything beforehand; the other policies are then those of {@link followPlan}. */
  readonly plan?: PlannerName;
}

const MODULES = ['.js', '.mjs', '.ts'];
const CONFIG_FILES = ['.yaml', '.yml', '.json', ...MODULES];

/**
 * Reads one part of `--policies a,b,c`: `default`; a built-in policy (`balanced`), with its slot where several
 * have one of this name (`ordering/dask`); several of them (`balanced+ordering/dask`); or the path of a configuration.
 *
 * @throws YardmasterError `ERR_SLOT` for a name that no slot or several slots know
 */
export function policyVariant(text: string): PolicyVariant {
  if (CONFIG_FILES.includes(extname(text))) return { name: text, config: text };
  if (text === 'default') return { name: text, isBuiltin: true };
  const policies: Partial<Record<SlotName, { readonly use: string }>> = {};
  for (const part of text.split('+')) {
    const { slot, policy } = readPart(part);
    policies[slot] = { use: policy };
  }
  return { name: text, overrides: { scheduler: { policies } }, isBuiltin: true };
}

/**
 * As {@link policyVariant}; the path may also be that of a module of one policy (`definePolicy`), and `#name` picks
 * one of its exports.
 *
 * @throws YardmasterError `ERR_PLUGIN_LOAD` when the module cannot be loaded, or has no such export; `ERR_SLOT` when
 *   the export does not say which slot it fills
 */
export async function readVariant(text: string): Promise<PolicyVariant> {
  const hash = text.lastIndexOf('#');
  const [path, name] = hash > 0 ? [text.slice(0, hash), text.slice(hash)] : [text, ''];
  if (!MODULES.includes(extname(path))) return policyVariant(text);
  const use = resolve(path) + name;
  const { exported } = await new PluginResolver({}, process.cwd()).resolve(use, 'policy');
  const { kind, slot } = (exported ?? {}) as Partial<PolicyDefinition>;
  if (kind === 'policy' && slot !== undefined) {
    return { name: text, overrides: { scheduler: { policies: { [slot]: { use } } } } };
  }
  if (name === '') return policyVariant(text); // A configuration in code.
  throw new YardmasterError(
    'ERR_SLOT',
    `"${text}" does not say which slot it fills: export what definePolicy(slot, …) returns, or compare a configuration that names it`,
    { policy: text },
  );
}

function readPart(part: string): { readonly slot: SlotName; readonly policy: string } {
  const separator = part.indexOf('/');
  const wantedSlot = separator < 0 ? undefined : part.slice(0, separator);
  const policy = part.slice(separator + 1);
  const slots = SLOT_NAMES.filter(
    (slot) =>
      (wantedSlot === undefined || slot === wantedSlot) && BUILTIN_POLICIES[slot].includes(policy),
  );
  const [slot, ...others] = slots;
  if (slot === undefined) {
    const known = SLOT_NAMES.flatMap((name) =>
      BUILTIN_POLICIES[name].map((one) => `${name}/${one}`),
    );
    throw new YardmasterError(
      'ERR_SLOT',
      `"${part}" is no built-in policy${hint(part, known) || '.'} Write default, the path of a configuration, or one of ${known.join(', ')}`,
      { policy: part },
    );
  }
  if (others.length > 0) {
    const choices = slots.map((name) => `${name}/${policy}`);
    throw new YardmasterError(
      'ERR_SLOT',
      `"${part}" is a policy of several slots; write ${choices.join(' or ')}`,
      { policy: part },
    );
  }
  return { slot, policy };
}
