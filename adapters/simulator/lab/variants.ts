import { extname, resolve } from 'node:path';
import {
  BUILTIN_POLICIES,
  type PolicyDefinition,
  SLOT_NAMES,
  type SlotName,
  type UseEntry,
  YardmasterError,
} from '../../../core/api/index.ts';
import { type PresetName, PRESETS } from '../../../core/config/schema.ts';
import { resolverIn } from '../../../core/plugin-host/module-files.ts';
import { hint } from '../../../core/shared/words.ts';
import { type ConfigInput, configuration } from '../../app/config.ts';
import type { PlannerName } from './offline.ts';

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
  /** A planner that knows everything beforehand; the other policies only carry its plan out. */
  readonly plan?: PlannerName;
}

const MODULES = ['.js', '.mjs', '.ts'];
const CONFIG_FILES = ['.yaml', '.yml', '.json', ...MODULES];

/** Settings of the scheduler that one part of a variant stands for. */
interface Part {
  readonly policies?: Partial<Record<SlotName, UseEntry>>;
  readonly [section: string]: unknown;
}

/** Choices of the Active Memory Manager. Its default is `reduce-replicas` alone. */
const MEMORY_MANAGERS: Readonly<Record<string, Part>> = {
  'amm/balance-memory': {
    activeMemoryManager: { policies: [{ use: 'reduce-replicas' }, { use: 'balance-memory' }] },
  },
  'amm/none': { activeMemoryManager: { start: false } },
};

/**
 * Reads one part of `--policies a,b,c`: `default`; a preset (`dask`); a built-in policy (`balanced`), with its slot where
 * several have one of this name (`ordering/dask`), or of the memory manager (`amm/balance-memory`, `amm/none`); several of
 * them (`dask+family`), of which the later win; or the path of a configuration.
 *
 * @throws YardmasterError `ERR_SLOT` for a name that no slot or several slots know
 */
export function policyVariant(text: string): PolicyVariant {
  if (CONFIG_FILES.includes(extname(text))) return { name: text, config: text };
  return { ...joined(text, text.split('+').map(builtinPart)), isBuiltin: true };
}

/**
 * As {@link policyVariant}; a part may also be the path of a module of one policy (`definePolicy`), and `#name` picks
 * one of its exports.
 *
 * @throws YardmasterError `ERR_PLUGIN_LOAD` when the module cannot be loaded, or has no such export; `ERR_SLOT` when
 *   the export does not say which slot it fills
 */
export async function readVariant(text: string): Promise<PolicyVariant> {
  const names = text.split('+');
  if (!names.some((name) => MODULES.includes(extname(pathOf(name))))) return policyVariant(text);
  const parts: Part[] = [];
  for (const name of names) {
    const isModule = MODULES.includes(extname(pathOf(name)));
    const part = isModule ? await modulePart(name) : builtinPart(name);
    if (part === undefined && names.length === 1) return policyVariant(text); // A configuration in code.
    if (part === undefined) throw withoutSlot(name);
    parts.push(part);
  }
  return joined(text, parts);
}

function joined(name: string, parts: readonly Part[]): PolicyVariant {
  const policies = Object.assign({}, ...parts.map((part) => part.policies)) as Part['policies'];
  const scheduler = Object.assign({}, ...parts, { policies }) as ConfigInput['scheduler'];
  return parts.every((part) => part === DEFAULT) ? { name } : { name, overrides: { scheduler } };
}

const DEFAULT: Part = {};

function builtinPart(name: string): Part {
  if (name === 'default') return DEFAULT;
  if (Object.hasOwn(PRESETS, name)) return configuration.preset(name as PresetName) as Part;
  const manager = MEMORY_MANAGERS[name];
  if (manager !== undefined) return manager;
  const { slot, policy } = readPart(name);
  return { policies: { [slot]: { use: policy } } };
}

/** Undefined: the module is a configuration. */
async function modulePart(name: string): Promise<Part | undefined> {
  const path = pathOf(name);
  const use = resolve(path) + name.slice(path.length);
  const { exported } = await resolverIn(process.cwd()).resolve(use, 'policy');
  const { kind, slot } = (exported ?? {}) as Partial<PolicyDefinition>;
  if (kind === 'policy' && slot !== undefined) return { policies: { [slot]: { use } } };
  if (path === name) return undefined;
  throw withoutSlot(name);
}

/** Without the name of an export. */
function pathOf(name: string): string {
  const hash = name.lastIndexOf('#');
  return hash > 0 ? name.slice(0, hash) : name;
}

function withoutSlot(name: string): YardmasterError {
  return new YardmasterError(
    'ERR_SLOT',
    `"${name}" does not say which slot it fills: export what definePolicy(slot, …) returns, or compare a configuration that names it`,
    { policy: name },
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
    const known = [
      ...Object.keys(PRESETS),
      ...SLOT_NAMES.flatMap((name) => BUILTIN_POLICIES[name].map((one) => `${name}/${one}`)),
      ...Object.keys(MEMORY_MANAGERS),
    ];
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
