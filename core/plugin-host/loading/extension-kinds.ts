import { YardmasterError } from '../../api/errors.ts';
import type { ExtensionKind } from '../../api/plugin.ts';
import { SLOT_NAMES, type SlotName } from '../../api/policies.ts';
import { methodNamesOf, namesOf, ownHooksOf, ownNamesOf, type PluginKind } from '../hook-names.ts';
import { adviceAgainst, CALLS } from './not-an-extension.ts';

interface KindText {
  readonly noun: string;
  readonly madeBy: string;
  /** Where a configuration names it. */
  readonly place: string;
}

const TEXTS: Readonly<Record<ExtensionKind, KindText>> = {
  plugin: {
    noun: 'a plugin',
    madeBy: 'definePlugin',
    place: 'scheduler.plugins',
  },
  'worker-plugin': {
    noun: 'a worker-plugin',
    madeBy: 'defineWorkerPlugin',
    place: 'worker.plugins',
  },
  'nanny-plugin': {
    noun: 'a nanny-plugin',
    madeBy: 'defineNannyPlugin',
    place: 'worker.nannyPlugins',
  },
  policy: {
    noun: 'a policy',
    madeBy: 'definePolicy',
    place: 'scheduler.policies.<slot>',
  },
  'amm-policy': {
    noun: 'a policy of the Active Memory Manager',
    madeBy: 'defineAmmPolicy',
    place: 'scheduler.activeMemoryManager.policies',
  },
  transport: {
    noun: 'a transport',
    madeBy: 'defineTransport',
    place: 'scheduler.transport',
  },
};

/** The slot of a policy by one of the methods that it has to have. */
const SLOT_OF_METHOD: Readonly<Record<string, SlotName>> = {
  score: 'workerSelection',
  select: 'workerSelection',
  isRootish: 'queuing',
  selectRootish: 'queuing',
  order: 'ordering',
  generations: 'fairness',
  mayTake: 'stealing',
  victims: 'stealing',
  levelOf: 'stealing',
  pays: 'stealing',
};

const POLICY_METHODS = Object.keys(SLOT_OF_METHOD);

/** `a plugin of workers` */
export function nounOf(kind: ExtensionKind): string {
  return TEXTS[kind].noun;
}

/**
 * Refuses what is clearly of another kind, and says where that belongs.
 * @throws YardmasterError `ERR_PLUGIN_LOAD`
 */
export function checkKind(exported: unknown, wanted: ExtensionKind, source: string): void {
  const advice = adviceAgainst(exported, Object.keys(TEXTS));
  if (advice !== undefined) {
    throw new YardmasterError('ERR_PLUGIN_LOAD', `${source} is no ${wanted}: ${advice}`, {
      source,
      wanted,
    });
  }
  const kind = kindOf(exported, wanted);
  if (kind === undefined || kind === wanted) return;
  const { noun, place } = TEXTS[kind];
  const slot = kind === 'policy' ? slotOf(exported as object) : undefined;
  const what = slot === undefined ? noun : `${noun} of the slot ${slot}`;
  const at = place.replace('<slot>', slot ?? '<slot>');
  throw new YardmasterError(
    'ERR_PLUGIN_LOAD',
    `${source} is ${what}, and ${TEXTS[wanted].noun} is wanted here: name it under ${at} or use ${CALLS[kind]}, or make ${TEXTS[wanted].noun} with ${TEXTS[wanted].madeBy}`,
    { source, kind, wanted, ...(slot === undefined ? {} : { slot }) },
  );
}

/** The slot that a policy says that it is for, else the one whose methods it has. */
function slotOf(policy: object): SlotName | undefined {
  const { slot } = policy as { slot?: unknown };
  const declared = SLOT_NAMES.find((name) => name === slot);
  if (declared !== undefined) return declared;
  const method = methodsOf(policy).find((name) => Object.hasOwn(SLOT_OF_METHOD, name));
  return method === undefined ? undefined : SLOT_OF_METHOD[method];
}

/** For what is of no kind at all. */
export function notOfKind(wanted: ExtensionKind, source: string): YardmasterError {
  const { madeBy } = TEXTS[wanted];
  return new YardmasterError(
    'ERR_PLUGIN_LOAD',
    `${source} is no ${wanted}: expected a definition made by ${madeBy}, a class or an instance`,
    { source, wanted },
  );
}

/** For the end of a message: what an extension is instead of what is wanted; '' when that is not clear. */
export function insteadText(exported: unknown, wanted: ExtensionKind): string {
  const kind = kindOf(exported, wanted);
  if (kind === undefined || kind === wanted) return '';
  return `; it is ${TEXTS[kind].noun}, which belongs under ${TEXTS[kind].place}`;
}

/** What it says that it is, else what its methods say. Undefined: it may be what is wanted. */
function kindOf(exported: unknown, wanted: ExtensionKind): ExtensionKind | undefined {
  if ((typeof exported !== 'object' && typeof exported !== 'function') || exported === null) {
    return undefined;
  }
  const declared = declaredKind(exported);
  if (declared !== undefined) return declared;
  const methods = methodsOf(exported);
  const has = (names: readonly string[]): boolean => names.some((name) => methods.includes(name));
  if (fits(wanted, methods)) return undefined;
  if (methods.includes('run')) return 'amm-policy';
  if (methods.includes('listen') && methods.includes('connect')) return 'transport';
  if (has(POLICY_METHODS)) return 'policy';
  const plugins: readonly PluginKind[] = ['worker-plugin', 'nanny-plugin', 'plugin'];
  return plugins.find((kind) => has(ownHooksOf(kind)));
}

/** Whether any method is one that the wanted kind alone has. */
function fits(wanted: ExtensionKind, methods: readonly string[]): boolean {
  const own = {
    policy: POLICY_METHODS,
    'amm-policy': ['run'],
    transport: ['listen'],
  } as const;
  if (wanted === 'policy' || wanted === 'amm-policy' || wanted === 'transport') {
    return own[wanted].some((name) => methods.includes(name));
  }
  return ownNamesOf(wanted).some((name) => methods.includes(name));
}

/** Whether a class or an instance has anything that is ever called. */
export function hasAnyName(instance: object, kind: PluginKind): boolean {
  const methods = methodNamesOf(instance);
  return namesOf(kind).some((name) => methods.includes(name));
}

/** Definitions have a field `kind`; classes may have a static one. */
function declaredKind(exported: object): ExtensionKind | undefined {
  const own = (exported as { kind?: unknown }).kind;
  const ofClass = (exported.constructor as { kind?: unknown } | undefined)?.kind;
  const kind = [own, ofClass].find((value) => typeof value === 'string');
  return kind !== undefined && Object.hasOwn(TEXTS, kind) ? (kind as ExtensionKind) : undefined;
}

function methodsOf(exported: object): string[] {
  if (typeof exported !== 'function') return methodNamesOf(exported);
  const prototype: unknown = exported.prototype;
  return typeof prototype === 'object' && prototype !== null ? methodNamesOf(prototype) : [];
}
