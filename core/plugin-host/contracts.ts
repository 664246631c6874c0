/**
 * The contract of every kind of extension: a row for each in one table, and the checks that read it.
 * A new field of a contract has to be listed here to compile.
 */
import { distance } from 'fastest-levenshtein';
import { AMM_POLICY_PLACE } from '../api/amm-manager.ts';
import { checkVersion, MISSING_VERSION } from '../api/definition.ts';
import { type ErrorCode, messageOf, toErrorPayload, YardmasterError } from '../api/errors.ts';
import type { ExecutionResult, Executor, ExecutorDefinition } from '../api/executor.ts';
import { type EventName, HOOK_NAMES } from '../api/hooks.ts';
import type { NannyHooks, WorkerHooks } from '../api/local-plugins.ts';
import type { ExtensionKind, Logger, PluginDefinition } from '../api/plugin.ts';
import { type PolicyDefinition, SLOT_NAMES, type SlotName } from '../api/policies.ts';
import type { PolicyRoles, RoleName } from '../api/rules.ts';
import type { ResultStore, StoreDefinition } from '../api/result-store.ts';
import type { Transport, TransportDefinition } from '../api/transport.ts';
import {
  ANY,
  check,
  FIELDS,
  FLAG,
  FUNCTION,
  pathText,
  type Schema,
  TEXT,
  wholeNumber,
} from '../shared/schema.ts';
import { hint, nearest, show } from '../shared/words.ts';
import { isPlainObject } from '../util/values.ts';

export type PluginKind = 'plugin' | 'worker-plugin' | 'nanny-plugin';

/** Keys of every member of a union. */
type NamesOf<T> = T extends unknown ? keyof T : never;

/** A rule for each name that a thing may have. */
type Rules<Name extends PropertyKey> = Readonly<Record<Name, Schema>>;
type Fields = Readonly<Record<string, unknown>>;
type NamedRules = Readonly<Record<string, Schema>>;

const SCHEMA: Schema = { ...FIELDS, wanted: 'a JSON schema, which is an object' };
const PLUGIN_FIELDS: Rules<keyof PluginDefinition> = {
  kind: ANY,
  name: {
    pattern: '^[A-Za-z][\\w\\-]*$',
    type: 'string',
    wanted: 'text that starts with a letter and has letters, digits, - and _',
  },
  apiVersion: ANY,
  optionsSchema: SCHEMA,
  setup: { ...FUNCTION, wanted: 'a function; hooks are what it returns' },
  requires: { type: 'array', items: { type: 'string' }, wanted: 'a list of names' },
  provide: {
    ...{ type: 'array', items: FIELDS },
    wanted: 'a list of providers, such as [{ token, useClass }]',
  },
  load: FUNCTION,
};
const POLICY_FIELDS: Rules<keyof PolicyDefinition> = {
  ...{ kind: ANY, slot: ANY, name: TEXT, apiVersion: ANY, optionsSchema: SCHEMA },
  create: FUNCTION,
};
/** Of a transport, an executor, a store, or a rule. */
const MADE_FIELDS: Rules<keyof (TransportDefinition | ExecutorDefinition | StoreDefinition)> = {
  ...{ kind: ANY, name: TEXT, apiVersion: ANY, optionsSchema: SCHEMA, create: FUNCTION },
};
const REQUIRED_FIELDS: readonly string[] = ['name', 'setup', 'create'];

const reachOf = (holders: number, others: number): Schema => ({
  ...{ type: 'object', required: ['holders', 'others'] },
  properties: { holders: wholeNumber(holders), others: wholeNumber(others) },
});
const REACH: Schema = {
  anyOf: [{ const: 'all' }, reachOf(1, 0), reachOf(0, 1)],
  wanted: '"all" or { holders, others }, two whole numbers of which one is above 0',
};
const MEMORY = { snapshot: FUNCTION, restore: FUNCTION } as const;

/** The contract of a policy slot, or of rules. */
interface RoleRow<Member extends PropertyKey> {
  /** Methods and flags. */
  readonly members: Rules<Member>;
  /** The methods without which nothing can fill the slot; one of each inner list. */
  readonly needs: readonly (readonly string[])[];
  /** Methods that exclude each other. */
  readonly excludes?: readonly (readonly [string, string])[];
}

const ROLES: { readonly [Role in RoleName]: RoleRow<NamesOf<PolicyRoles[Role]>> } = {
  workerSelection: {
    members: {
      ...{ reach: REACH, weighsResources: FLAG, placesRootish: FLAG },
      ...{ prepare: FUNCTION, admits: FUNCTION },
      ...{ score: FUNCTION, select: FUNCTION, pickFromPool: FUNCTION, ...MEMORY },
    },
    needs: [['score', 'select']],
    excludes: [
      ['score', 'select'],
      ['select', 'pickFromPool'],
    ],
  },
  queuing: {
    members: {
      ...{ holdsBack: FLAG, leavesPlacement: FLAG, prepare: FUNCTION, isRootish: FUNCTION },
      ...{ slotLimit: FUNCTION, selectRootish: FUNCTION, nextQueued: FUNCTION },
      ...{ priorityChanged: FUNCTION, ...MEMORY },
    },
    needs: [['isRootish'], ['slotLimit'], ['selectRootish']],
  },
  ordering: { members: { order: FUNCTION, ...MEMORY }, needs: [['order']] },
  fairness: {
    members: {
      ...{ isPerTask: FLAG, generations: FUNCTION, taskOver: FUNCTION, revise: FUNCTION },
      ...MEMORY,
    },
    needs: [['generations']],
  },
  stealing: {
    members: {
      ...{ begin: FUNCTION, mayTake: FUNCTION, victims: FUNCTION, levelOf: FUNCTION },
      ...{ order: FUNCTION, pays: FUNCTION, mayPay: FUNCTION },
    },
    needs: [['mayTake', 'victims', 'levelOf', 'order', 'pays']],
  },
  rules: {
    members: {
      ...{ concerns: FUNCTION, filter: FUNCTION, score: FUNCTION, holds: FUNCTION },
      mayMove: FUNCTION,
    },
    needs: [['filter', 'score', 'holds', 'mayMove']],
  },
};

/** The slot that a method makes a policy one for. */
const SLOT_OF_METHOD = new Map<string, SlotName>();
for (const slot of SLOT_NAMES) {
  for (const method of ROLES[slot].needs.flat()) {
    if (!SLOT_OF_METHOD.has(method)) SLOT_OF_METHOD.set(method, slot);
  }
}

/** One object may fill several slots. */
const IN_ANY_SLOT: ReadonlySet<string> = new Set([
  'name',
  ...Object.values(ROLES).flatMap(({ members }) => Object.keys(members)),
]);

/** Names of the methods and flags of a policy or rule. */
export function membersOf(role: RoleName): readonly string[] {
  return Object.keys(ROLES[role].members);
}

interface KindRow {
  readonly noun: string;
  readonly madeBy: string;
  /** The place at which a configuration names it. */
  readonly place: string;
  /** The call with which a program gives one that it has in code. */
  readonly call: string;
  /** Of its definition; undefined: its plugin checks that. */
  readonly fields?: NamedRules;
  /** Methods and fields by one of which one without a definition is known. */
  readonly marks: readonly string[];
  /** Methods without which it is none. */
  readonly all?: readonly string[];
}

interface PluginRow extends KindRow {
  readonly owners: string;
  readonly hooks: readonly string[];
  /**
   * Names that Dask or other kinds of plugins have for the same, simplified; '' where nothing is like it.
   */
  readonly aliases: Readonly<Record<string, string>>;
}

/** Methods that are called at moments of the life of a plugin. */
const LIFE = ['setup', 'start', 'beforeClose', 'close'];

const WORKER_HOOKS: readonly (keyof WorkerHooks)[] = [
  ...(['taskTransition', 'statusChanged', 'schedulerLost', 'schedulerBack'] as const),
];
const NANNY_HOOKS: readonly (keyof NannyHooks)[] = [
  ...(['processStarting', 'processRegistered', 'processEnded'] as const),
];

const PLUGINS: Readonly<Record<PluginKind, PluginRow>> = {
  'worker-plugin': {
    ...{ noun: 'a worker-plugin', madeBy: 'defineWorkerPlugin', owners: 'plugins of workers' },
    ...{ place: 'worker.plugins', call: 'startWorker(address, { plugins })' },
    ...{ fields: PLUGIN_FIELDS, hooks: WORKER_HOOKS },
    marks: WORKER_HOOKS.filter((hook) => hook !== 'taskTransition'),
    aliases: {
      ...{ transition: 'taskTransition', releasekey: '', releasedep: '' },
      ...{ teardown: 'close', workerstatuschanged: 'statusChanged' },
    },
  },
  'nanny-plugin': {
    ...{ noun: 'a nanny-plugin', madeBy: 'defineNannyPlugin', owners: 'plugins of nannies' },
    ...{ place: 'worker.nannyPlugins', call: 'startWorker(address, { nannyPlugins })' },
    ...{ fields: PLUGIN_FIELDS, hooks: NANNY_HOOKS, marks: NANNY_HOOKS },
    aliases: { teardown: 'close' },
  },
  plugin: {
    ...{ noun: 'a plugin', madeBy: 'definePlugin', owners: 'plugins of the scheduler' },
    ...{ place: 'scheduler.plugins', call: 'scheduler.addPlugin(plugin)' },
    ...{ fields: PLUGIN_FIELDS, hooks: HOOK_NAMES },
    marks: HOOK_NAMES.filter((hook) => hook !== 'taskTransition'),
    aliases: {
      ...{ transition: 'taskTransition', updategraph: 'graphUpdated', addworker: 'workerAdded' },
      ...{ removeworker: 'workerRemoved', addclient: 'clientAdded', removeclient: 'clientRemoved' },
      ...{ restart: 'restarted', logevent: 'eventLogged', validworkersdownscaling: '' },
      ...{ teardown: 'close', statuschanged: 'workerStatusChanged' },
    },
  },
};
const PLUGIN_KINDS = Object.keys(PLUGINS) as PluginKind[];

/** In the order in which something is taken for one by its methods. */
const KINDS: Readonly<Record<ExtensionKind, KindRow>> = {
  executor: {
    ...{ noun: 'an executor', madeBy: 'defineExecutor', place: 'worker.executor' },
    ...{ call: 'startWorker(address, { executor })', fields: MADE_FIELDS },
    ...{ marks: ['threadCount', 'callActor'], all: ['run'] },
  },
  'amm-policy': {
    ...{ noun: 'a policy of the Active Memory Manager', madeBy: 'defineAmmPolicy' },
    ...AMM_POLICY_PLACE,
    marks: ['run'],
  },
  store: {
    ...{ noun: 'a store of results', madeBy: 'defineStore', place: 'worker.resultStore' },
    ...{ call: 'cluster.client({ resultStore })', fields: MADE_FIELDS },
    ...{ marks: ['read'], all: ['has', 'write', 'delete'] },
  },
  transport: {
    ...{ noun: 'a transport', madeBy: 'defineTransport', place: 'scheduler.transport' },
    ...{ call: 'createScheduler({ transports })', fields: MADE_FIELDS },
    ...{ marks: ['listen'], all: ['connect'] },
  },
  policy: {
    ...{ noun: 'a policy', madeBy: 'definePolicy', place: 'scheduler.policies.<slot>' },
    ...{ call: 'scheduler.replacePolicy(slot, policy)', fields: POLICY_FIELDS },
    marks: [...SLOT_OF_METHOD.keys()],
  },
  rule: {
    ...{ noun: 'a rule', madeBy: 'defineRule', place: 'scheduler.policies.rules' },
    ...{ call: "context.providePolicy('rules', rule)", fields: MADE_FIELDS },
    marks: ROLES.rules.needs.flat(),
  },
  ...PLUGINS,
};

/** Values that are no extension of any kind, and what to do with them instead. */
const NO_EXTENSIONS: readonly (readonly [is: (given: unknown) => boolean, advice: string])[] = [
  [(given) => given === undefined, 'it is undefined; is its import right?'],
  [(given) => given === null, 'it is null; is its import right?'],
  [Array.isArray, 'it is a list; give its entries one by one'],
  [(given) => given instanceof Promise, 'it is a promise: await it first'],
  [
    (given) =>
      Object.prototype.toString.call(given) === '[object Module]' || isNameless(given, 'default'),
    'it is a module: give one of its exports, such as its default export',
  ],
  [
    (given) => isNameless(given, 'use'),
    'it is an entry of a configuration: give what its "use" names',
  ],
  [
    (given) => isNameless(given, 'scheduler') || isNameless(given, 'worker'),
    'it is a configuration, which a scheduler gets when it is made: createScheduler({ config })',
  ],
];

function isNameless(given: unknown, field: string): boolean {
  return isPlainObject(given) && field in given && !('name' in given);
}

/**
 * Refuses what is clearly of another kind, and says where that belongs.
 * @throws YardmasterError `ERR_PLUGIN_LOAD`
 */
export function checkKind(exported: unknown, wanted: ExtensionKind, source: string): void {
  const kinds = Object.keys(KINDS);
  const { kind: named } = (isPlainObject(exported) ? exported : {}) as { kind?: unknown };
  const advice =
    typeof named === 'string' && !kinds.includes(named)
      ? `its kind is "${named}"; there are plugin, ${kinds.filter((one) => one !== 'plugin').join(', ')}`
      : NO_EXTENSIONS.find(([is]) => is(exported))?.[1];
  if (advice !== undefined) {
    const message = `${source} is no ${wanted}: ${advice}`;
    throw new YardmasterError('ERR_PLUGIN_LOAD', message, { source, wanted });
  }
  const kind = otherKind(exported, wanted);
  if (kind === undefined) return;
  const { noun, place, call } = KINDS[kind];
  const slot = kind === 'policy' ? slotOf(exported as object) : undefined;
  const what = slot === undefined ? noun : `${noun} of the slot ${slot}`;
  const at = place.replace('<slot>', slot ?? '<slot>');
  const { noun: wantedNoun, madeBy } = KINDS[wanted];
  throw new YardmasterError(
    'ERR_PLUGIN_LOAD',
    `${source} is ${what}, and ${wantedNoun} is wanted here: name it under ${at} or use ${call}, or make ${wantedNoun} with ${madeBy}`,
    { source, kind, wanted, ...(slot === undefined ? {} : { slot }) },
  );
}

/** Kinds that an owner makes by their definition alone. */
const MADE: ReadonlySet<ExtensionKind> = new Set(['executor', 'store', 'transport']);

/** For what is of no kind at all. */
export function notOfKind(wanted: ExtensionKind, source: string): YardmasterError {
  return new YardmasterError(
    'ERR_PLUGIN_LOAD',
    `${source} is no ${wanted}: expected a definition made by ${KINDS[wanted].madeBy}${MADE.has(wanted) ? ' or an instance, and no class' : ', a class or an instance'}`,
    { source, wanted },
  );
}

/** For the end of a message: what an extension is instead of what is wanted; '' when that is not clear. */
export function insteadText(exported: unknown, wanted: ExtensionKind): string {
  const kind = otherKind(exported, wanted);
  return kind === undefined
    ? ''
    : `; it is ${KINDS[kind].noun}, which belongs under ${KINDS[kind].place}`;
}

/** The kind that something says that it is, else that its methods show. Undefined: it may be what is wanted. */
function otherKind(exported: unknown, wanted: ExtensionKind): ExtensionKind | undefined {
  if ((typeof exported !== 'object' && typeof exported !== 'function') || exported === null) {
    return undefined;
  }
  const declared = declaredKind(exported);
  if (declared !== undefined) return declared === wanted ? undefined : declared;
  const methods = methodsOf(exported);
  const has = (name: string): boolean =>
    methods.includes(name) || (typeof exported === 'object' && name in exported);
  const hasOne = (names: readonly string[]): boolean => names.some(has);
  const isLikeOne = (kind: ExtensionKind): boolean =>
    hasOne(KINDS[kind].marks) && (KINDS[kind].all ?? []).every(has);
  // Its methods are those of others, too.
  if (wanted !== 'executor' && isLikeOne('executor')) return 'executor';
  // The check of its fields says what is missing.
  if (hasOne([...KINDS[wanted].marks, ...(KINDS[wanted].all ?? [])])) return undefined;
  if (Object.hasOwn(PLUGINS, wanted) && hasOne(['start', 'beforeClose'])) return undefined;
  return (Object.keys(KINDS) as ExtensionKind[]).find(isLikeOne);
}

/** Definitions have a field `kind`; classes may have a static one. */
function declaredKind(exported: object): ExtensionKind | undefined {
  const own = (exported as { kind?: unknown }).kind;
  const ofClass = (exported.constructor as { kind?: unknown } | undefined)?.kind;
  const kind = [own, ofClass].find((value) => typeof value === 'string');
  return kind !== undefined && Object.hasOwn(KINDS, kind) ? (kind as ExtensionKind) : undefined;
}

/** The slot that a policy says that it is for, else the one whose methods it has. */
function slotOf(policy: object): SlotName | undefined {
  const declared = SLOT_NAMES.find((name) => name === (policy as { slot?: unknown }).slot);
  if (declared !== undefined) return declared;
  const method = methodsOf(policy).find((name) => SLOT_OF_METHOD.has(name));
  return method === undefined ? undefined : SLOT_OF_METHOD.get(method);
}

/**
 * Checks the fields of a definition. One that is unknown is refused unless it is text, which is for people, and is like no
 * known one.
 * @throws YardmasterError `ERR_PLUGIN_LOAD` with every problem
 */
export function checkDefinition(kind: ExtensionKind, definition: object, source: string): void {
  const { fields: rules = {} } = KINDS[kind];
  const known = Object.keys(rules);
  const fields = definition as Fields;
  const isFree = (name: string): boolean =>
    name.startsWith('_') || (typeof fields[name] === 'string' && !isLike(name, known));
  const unknown = Object.keys(fields).filter(
    (name) => !Object.hasOwn(rules, name) && !isFree(name),
  );
  const required = REQUIRED_FIELDS.filter((name) => Object.hasOwn(rules, name));
  const problems = [
    ...unknown.map(
      (name) => `there is no field "${name}"${hint(name, known)}; there are ${known.join(', ')}`,
    ),
    ...problemsOf(fields, rules, required),
  ];
  if (fields['apiVersion'] === undefined) problems.push(MISSING_VERSION);
  const { name } = fields;
  if (problems.length === 0) return;
  const shown = typeof name === 'string' && name !== '' ? `${name} (${source})` : source;
  throw new YardmasterError(
    'ERR_PLUGIN_LOAD',
    `the definition of the ${kind} ${shown} is not right: ${problems.join('; ')}`,
    { source, problems },
  );
}

/**
 * Refuses a class whose schema has a misspelt name: it would take any options.
 * @throws YardmasterError `ERR_PLUGIN_LOAD`
 */
export function checkStatics(Class: object, source: string): void {
  const written = Object.keys(Class).find((name) => isLike(name, ['optionsSchema']));
  if (written === undefined || written === 'optionsSchema') return;
  throw new YardmasterError(
    'ERR_PLUGIN_LOAD',
    `${source} has a static "${written}", which nothing reads; did you mean "optionsSchema"?`,
    { source },
  );
}

export function hooksOf(kind: PluginKind): readonly string[] {
  return PLUGINS[kind].hooks;
}

/** Every hook and method of the life of a kind of plugin. */
function namesOf(kind: PluginKind): readonly string[] {
  return [...PLUGINS[kind].hooks, ...LIFE];
}

/**
 * Refuses a class or an instance of which nothing is ever called.
 * @throws YardmasterError `ERR_PLUGIN_LOAD`
 */
export function checkIsCalled(
  instance: object,
  kind: PluginKind,
  name: string,
  source: string,
): void {
  const methods = methodNamesOf(instance);
  if (namesOf(kind).some((called) => methods.includes(called))) return;
  throw new YardmasterError(
    'ERR_PLUGIN_LOAD',
    `${name} (${source}) has neither a hook nor a method setup, so nothing of it would ever be called; it is no use as ${KINDS[kind].noun}`,
    { plugin: name, source },
  );
}

/**
 * Refuses hooks that would silently never be called: misspelt ones, those of other kinds of
 * plugins, and those under Dask's names. An object of hooks may have nothing else; a class may have
 * further methods.
 *
 * @param code - `ERR_PLUGIN_LOAD` before the plugin is set up, `ERR_PLUGIN_SETUP` for what `setup`
 *   returned
 * @throws YardmasterError of that code
 */
export function checkHookNames(
  plugin: string,
  instance: object,
  kind: PluginKind,
  code: Extract<ErrorCode, 'ERR_PLUGIN_LOAD' | 'ERR_PLUGIN_SETUP'>,
): void {
  const isPlain = isPlainInstance(instance);
  for (const key of methodNamesOf(instance)) {
    const complaint = complaintAbout(key, kind, isPlain);
    if (complaint === undefined) continue;
    const advice = isPlain ? '' : ' If it is not meant as a hook, rename it or make it #private.';
    throw new YardmasterError(
      code,
      `plugin "${plugin}" has a hook "${key}", which does not exist${complaint}${advice}`,
      { plugin, hook: key, known: namesOf(kind) },
    );
  }
}

/** The end of a message about a method that nothing calls. Undefined: it may well be one of the plugin's own. */
function complaintAbout(name: string, kind: PluginKind, isPlain: boolean): string | undefined {
  const { hooks, aliases } = PLUGINS[kind];
  const known = namesOf(kind);
  if (known.includes(name)) return undefined;
  const simple = simplify(name);
  const alias = Object.hasOwn(aliases, simple) ? aliases[simple] : undefined;
  if (alias === '') return '; Dask has it, and nothing calls it here: remove it';
  const meant =
    alias ??
    known.find((one) => simplify(one) === simple) ??
    hooks.find((hook) => isMisspelt(simple, simplify(hook)));
  if (meant !== undefined) return `; did you mean "${meant}"?`;
  const elsewhere = PLUGIN_KINDS.find((other) =>
    PLUGINS[other].marks.some((hook) => simplify(hook) === simple),
  );
  if (elsewhere !== undefined) return `; only ${PLUGINS[elsewhere].owners} have it`;
  return isPlain ? `${hint(name, known)}; there are ${known.join(', ')}` : undefined;
}

/**
 * Checks what fills a slot, or a rule. What would silently never be asked is refused, too: misspelt methods and flags, and
 * in a plain object methods that no slot has. A class may have further methods; names that begin with `_` are
 * free.
 * @throws YardmasterError `ERR_SLOT`
 */
export function checkPolicy(role: RoleName, policy: unknown, source: string): void {
  const methods = (policy ?? {}) as Fields;
  const { members, needs, excludes = [] }: RoleRow<string> = ROLES[role];
  const known = Object.keys(members);
  const refuse = (what: string, data: object): never => {
    const use = role === 'rules' ? 'be a rule' : `fill the slot ${role}`;
    throw new YardmasterError('ERR_SLOT', `${source} cannot ${use}: ${what}`, { role, ...data });
  };
  if (typeof policy !== 'object') refuse(`it is ${show(policy)}, and no object with methods`, {});
  if ('kind' in methods) refuse('it is a definition: give what its create() returns', {});
  const [name, advice] = neverAsked(methods, known) ?? [];
  if (name !== undefined)
    refuse(`it has "${name}", which nothing asks for${advice}`, { name, known });
  const [problem] = problemsOf(methods, members);
  if (problem !== undefined) refuse(`its ${problem}`, { problem });
  const has = (method: string): boolean => methods[method] !== undefined;
  const present = excludes.find((pair) => pair.every(has));
  if (present !== undefined) {
    refuse(`it has both ${present.join(' and ')}; keep one of them`, { present });
  }
  const missing = needs.find((names) => !names.some(has));
  if (missing === undefined) return;
  const written = methodNamesOf(methods).find(
    (one) => !IN_ANY_SLOT.has(one) && nearest(one, missing) !== undefined,
  );
  const instead = written === undefined ? '' : `, but "${written}"${hint(written, missing)}`;
  const others = `${instead}; there are ${known.join(', ')}`;
  refuse(`it has no method ${missing.join(' or ')}${others}`, { missing });
}

/** A name that nothing will ever ask for, and what to do about it. */
function neverAsked(policy: object, known: readonly string[]): [string, string] | undefined {
  const methods = methodNamesOf(policy);
  for (const name of new Set([...methods, ...Object.keys(policy)])) {
    if (IN_ANY_SLOT.has(name) || name.startsWith('_')) continue;
    const simple = simplify(name);
    const meant = known.find((each) => isMisspelt(simple, simplify(each)));
    if (meant !== undefined) {
      return [
        name,
        `; did you mean "${meant}"? A name of its own begins with _, or is #private in a class`,
      ];
    }
    if (isPlainInstance(policy) && methods.includes(name)) {
      const others = `; there are ${known.join(', ')}; a method of its own begins with _`;
      return [name, hint(name, known) + others];
    }
  }
  return undefined;
}

const SCHEME: Schema = {
  ...{ type: 'string', pattern: '^[a-z][a-z0-9+.\\-]*$' },
  wanted: 'the part of its addresses before "://", such as "tcp"',
};
const TRANSPORT: Rules<keyof Transport> = { scheme: SCHEME, listen: FUNCTION, connect: FUNCTION };

const EXECUTOR: Rules<keyof Executor> = {
  threadCount: {
    ...wholeNumber(1),
    wanted: 'a whole number of tasks that it runs at once, at least 1',
  },
  ...{ apiVersion: ANY, hasEventLoops: FLAG, memoryBytes: ANY, onActorLost: ANY },
  ...{ run: FUNCTION, begin: FUNCTION, runAside: FUNCTION, close: FUNCTION },
  ...{ callActor: FUNCTION, releaseActor: FUNCTION, callStacks: FUNCTION, profile: FUNCTION },
  collectGarbage: FUNCTION,
};

const STORE: Rules<keyof ResultStore> = {
  ...{ apiVersion: ANY, has: FUNCTION, read: FUNCTION, write: FUNCTION, delete: FUNCTION },
};

const MOMENT: Schema = {
  ...{ type: 'number', minimum: -Number.MAX_VALUE, maximum: Number.MAX_VALUE },
  wanted: 'a number of milliseconds',
};
const WORDS: Schema = { type: 'string' };

/** Fields of the result of a run, by its kind. */
const RESULTS: Readonly<Record<ExecutionResult['kind'], NamedRules>> = {
  success: {
    ...{ value: { bytes: true, wanted: 'a Uint8Array' }, type: WORDS },
    ...{ startMs: MOMENT, stopMs: MOMENT },
  },
  failure: {
    error: {
      ...{ type: 'object', required: ['name', 'message'] },
      properties: { name: WORDS, message: WORDS },
      wanted: 'an object with a name and a message, both text',
    },
  },
  reschedule: {},
  returned: {},
};

/** @throws YardmasterError `ERR_PLUGIN_LOAD` when it cannot be used as a transport */
export function checkTransport(value: unknown, source: string): asserts value is Transport {
  checkObject(value, TRANSPORT, `${source} is no transport that can be used`, 'ERR_PLUGIN_LOAD');
}

/** @throws YardmasterError `ERR_RESULT_STORE` when it cannot be used as a store, `ERR_PLUGIN_LOAD` for its version */
export function checkStore(value: unknown, what: string): asserts value is ResultStore {
  checkVersion(value, what);
  const required = ['has', 'read', 'write', 'delete'];
  checkObject(value, STORE, `${what} cannot be used`, 'ERR_RESULT_STORE', required);
}

/** @throws YardmasterError `ERR_EXECUTOR` when it cannot be used as an executor, `ERR_PLUGIN_LOAD` for its version */
export function checkExecutor(
  value: unknown,
  shown = `the executor ${classOf(value)}`,
): asserts value is Executor {
  checkVersion(value, shown);
  const required = ['threadCount', 'run', 'close'];
  checkObject(value, EXECUTOR, `${shown} cannot be used`, 'ERR_EXECUTOR', required);
}

/** For messages, the names of executors that were made by a definition. */
const names = new WeakMap<Executor, string>();

/** @returns false when the executor has a name already, because it serves another worker */
export function nameExecutor(executor: Executor, name: string): boolean {
  if (names.has(executor)) return false;
  names.set(executor, name);
  return true;
}

/**
 * The result with which an executor ended a run; a failure that names the executor when it is none.
 * @param what - what was run: `the task "x"`
 */
export function checkedResult(
  executor: Executor,
  result: ExecutionResult | undefined,
  what: string,
  log?: Logger,
): ExecutionResult {
  const fields = result as Fields | null | undefined;
  const kind = fields?.['kind'] as ExecutionResult['kind'] | undefined;
  if (kind === 'success' && isSuccess(fields as Fields)) return result as ExecutionResult;
  const rules = kind === undefined || !Object.hasOwn(RESULTS, kind) ? undefined : RESULTS[kind];
  const problems =
    rules === undefined
      ? [`there are results of the kinds ${Object.keys(RESULTS).join(', ')}`]
      : problemsOf(fields ?? {}, rules, Object.keys(rules)).map((problem) => `its ${problem}`);
  if (problems.length === 0) return result as ExecutionResult;
  const why = `ended ${what} with ${show(result)}, which is no result: ${problems.join('; ')}`;
  return brokenRun(executor, why, {}, log);
}

/** The failure of what an executor ran, when its method threw. */
export function thrownResult(
  executor: Executor,
  thrown: unknown,
  what: string,
  log: Logger,
): ExecutionResult {
  const why = `threw at ${what}: ${messageOf(thrown)}; its run must not reject: what a task throws is a result of the kind failure`;
  return brokenRun(executor, why, { cause: thrown }, log);
}

/** An executor in messages: `the executor own from ./own.js`. */
export function executorName(executor: Executor): string {
  return `the executor ${names.get(executor) ?? classOf(executor)}`;
}

function brokenRun(
  executor: Executor,
  why: string,
  rest: ErrorOptions,
  log?: Logger,
): ExecutionResult {
  const shown = executorName(executor);
  const message = `${shown} ${why}`;
  const err = new YardmasterError('ERR_EXECUTOR', message, { executor: shown }, rest);
  log?.error({ err }, message);
  return { kind: 'failure', error: toErrorPayload(err) };
}

/** The same as the rules say, without the time that they take: it is asked for every task. */
function isSuccess({ value, type, startMs, stopMs }: Fields): boolean {
  const isTimed = Number.isFinite(startMs) && Number.isFinite(stopMs);
  return isTimed && value instanceof Uint8Array && typeof type === 'string';
}

/** The events that can be listened to. */
const EVENTS: Readonly<Record<EventName, true>> = {
  ...{ 'worker-added': true, 'worker-removed': true, 'worker-status': true },
  ...{ 'client-added': true, 'client-removed': true, 'graph-submitted': true },
  ...{ 'task-erred': true, 'plugin-added': true, 'plugin-removed': true },
  ...{ error: true, event: true, closed: true },
};

/** @throws YardmasterError `ERR_CONFIG` for an event that does not exist, or a listener that is no function */
export function checkListener(name: unknown, listener: unknown): void {
  const known = Object.keys(EVENTS);
  const isKnown = typeof name === 'string' && Object.hasOwn(EVENTS, name);
  if (isKnown && typeof listener === 'function') return;
  const near = typeof name === 'string' ? hint(name, known) : '';
  const complaint = isKnown
    ? `a listener of the event "${name}" must be a function (got ${show(listener)})`
    : `there is no event ${show(name)}${near}; there are ${known.join(', ')}`;
  throw new YardmasterError('ERR_CONFIG', complaint, { event: name });
}

/** Name of the class of a value, for messages. */
function classOf(value: unknown): string {
  const { constructor } = (value ?? {}) as { constructor?: { name?: string } };
  const name = constructor?.name ?? '';
  return name === '' || name === 'Object' ? show(value) : name;
}

function checkObject(
  value: unknown,
  rules: NamedRules,
  what: string,
  code: ErrorCode,
  required = Object.keys(rules),
): void {
  const problems =
    typeof value === 'object' && value !== null
      ? [
          ...problemsOf(value as Fields, rules, required).map((problem) => `its ${problem}`),
          ...uncalledIn(value, Object.keys(rules), required),
        ]
      : [`it is ${show(value)} and no object`];
  if (problems.length === 0) return;
  throw new YardmasterError(code, `${what}: ${problems.join('; ')}`, { problems });
}

/** Methods that nothing calls. A class may have such, unless they have nearly the name of one that is called. */
function uncalledIn(
  value: object,
  known: readonly string[],
  required: readonly string[],
): string[] {
  const methods = methodNamesOf(value).filter((name) => !known.includes(name));
  const missing = required.filter((name) => (value as Fields)[name] === undefined);
  const isMisspelt = (name: string): boolean =>
    nearest(name, missing) !== undefined || (name.length > 4 && isLike(name, known));
  const isOwn = (name: string): boolean => name.startsWith('_') || !isPlainInstance(value);
  return methods
    .filter((name) => isMisspelt(name) || !isOwn(name))
    .map((name) => `nothing calls its method "${name}"${hint(name, known)}; its own begin with _`);
}

/** The faults of the fields that have rules. */
function problemsOf(fields: Fields, rules: NamedRules, required: readonly string[] = []): string[] {
  const given: Record<string, unknown> = {};
  const unreadable: string[] = [];
  for (const name of Object.keys(rules)) {
    try {
      given[name] = fields[name];
    } catch (cause) {
      unreadable.push(`${name} cannot be read: ${messageOf(cause)}`);
    }
  }
  const rule = { type: 'object', properties: rules, required };
  const { problems } = check(rule, given, [], 'code');
  return [...unreadable, ...problems.map(({ at, message }) => `${pathText(at)} ${message}`)];
}

/** Hooks shorter than this have to differ by case or dashes alone to count as misspelt. */
const LONG_NAME = 10;

/** True when a name is near enough to a known one to be meant as it; both simplified. */
function isMisspelt(simple: string, hook: string): boolean {
  const allowed = hook.length < LONG_NAME ? 1 : Math.max(2, Math.floor(hook.length / 5));
  return distance(simple, hook) <= allowed;
}

function isLike(name: string, known: readonly string[]): boolean {
  const meant = nearest(name, known);
  return meant !== undefined && isMisspelt(simplify(name), simplify(meant));
}

/** Case, dashes, underscores and dollar signs are no difference. */
function simplify(name: string): string {
  return name.toLowerCase().replaceAll(/[-_$]/g, '');
}

function methodsOf(exported: object): string[] {
  if (typeof exported !== 'function') return methodNamesOf(exported);
  const prototype: unknown = exported.prototype;
  return typeof prototype === 'object' && prototype !== null ? methodNamesOf(prototype) : [];
}

/** Names of methods, and of hooks with an order, of an object or the instances of a class. */
function methodNamesOf(value: object): string[] {
  const found = new Set<string>();
  for (
    let level: object | null = value;
    level !== null && level !== Object.prototype && level !== Function.prototype;
    level = Object.getPrototypeOf(level) as object | null
  ) {
    for (const [name, { value: held }] of Object.entries(Object.getOwnPropertyDescriptors(level))) {
      if (name !== 'constructor' && isCallable(held)) found.add(name);
    }
  }
  return [...found];
}

function isCallable(value: unknown): boolean {
  if (typeof value === 'function') return true;
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof Object.getOwnPropertyDescriptor(value, 'handler')?.value === 'function'
  );
}

/** Excludes instances of classes, which may have further methods. */
function isPlainInstance(instance: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(instance);
  return prototype === Object.prototype || prototype === null;
}
