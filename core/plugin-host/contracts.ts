/**
 * What every kind of extension has to have and may have: one table of checks for each, and what a message says
 * when something does not fit. A new field of a contract has to be listed here to compile.
 */
import { type ErrorCode, toErrorPayload, YardmasterError } from '../api/errors.ts';
import type { EventName } from '../api/hooks.ts';
import type { ExecutionResult, Executor } from '../api/executor.ts';
import type { NannyPluginDefinition, WorkerPluginDefinition } from '../api/local-plugins.ts';
import { PLUGIN_API_VERSION, type PluginDefinition } from '../api/plugin.ts';
import type { PolicyDefinition, PolicySlots, SlotName } from '../api/policies.ts';
import type { Transport, TransportDefinition } from '../api/transport.ts';
import {
  ANY,
  FIELDS,
  FLAG,
  FUNCTION,
  type OptionRule,
  TEXT,
  wholeNumber,
} from '../shared/call-options.ts';
import { hint, nearest, show } from '../shared/words.ts';
import { isPlainObject } from '../util/values.ts';
import { isMisspelt, methodNamesOf, simplify } from './hooks-check.ts';

/** Keys of every member of a union. */
type NamesOf<T> = T extends unknown ? keyof T : never;

/** A rule for each name that a thing may have. */
type Rules<Name extends PropertyKey> = Readonly<Record<Name, OptionRule>>;

const NAME: OptionRule = {
  wanted: 'text that starts with a letter and has letters, digits, - and _',
  fits: (v) => typeof v === 'string' && /^[a-z][\w-]*$/i.test(v),
};
const API_VERSION: OptionRule = {
  wanted: `the number ${PLUGIN_API_VERSION}`,
  fits: (v) => v === PLUGIN_API_VERSION,
};
const SCHEMA: OptionRule = { ...FIELDS, wanted: 'a JSON schema, which is an object' };
const NAMES: OptionRule = {
  wanted: 'a list of names',
  fits: (v) => Array.isArray(v) && v.every((one) => typeof one === 'string'),
};
const PROVIDERS: OptionRule = {
  wanted: 'a list of providers, such as [{ token, useClass }]',
  fits: (v) => Array.isArray(v) && v.every(isPlainObject),
};
const SETUP: OptionRule = { ...FUNCTION, wanted: 'a function; hooks are what it returns' };
const REACH: OptionRule = {
  wanted: '"all" or { holders, others }, two whole numbers of which one is above 0',
  fits: (v) => {
    if (v === 'all' || !isPlainObject(v)) return v === 'all';
    const counts = [v['holders'], v['others']];
    return counts.every((one) => wholeNumber(0).fits(one)) && counts.some((one) => one !== 0);
  },
};

/** Fields of a definition, by its kind, and those that it has to have. */
const DEFINITIONS: {
  readonly plugin: Rules<keyof PluginDefinition>;
  readonly 'worker-plugin': Rules<keyof WorkerPluginDefinition>;
  readonly 'nanny-plugin': Rules<keyof NannyPluginDefinition>;
  readonly policy: Rules<keyof PolicyDefinition>;
  readonly transport: Rules<keyof TransportDefinition>;
} = {
  plugin: {
    ...{ kind: ANY, name: NAME, apiVersion: API_VERSION, optionsSchema: SCHEMA, setup: SETUP },
    ...{ requires: NAMES, provide: PROVIDERS, load: FUNCTION },
  },
  'worker-plugin': {
    ...{ kind: ANY, name: NAME, apiVersion: API_VERSION, optionsSchema: SCHEMA, setup: SETUP },
    provide: PROVIDERS,
  },
  'nanny-plugin': {
    ...{ kind: ANY, name: NAME, apiVersion: API_VERSION, optionsSchema: SCHEMA, setup: SETUP },
  },
  policy: { kind: ANY, slot: ANY, name: TEXT, optionsSchema: SCHEMA, create: FUNCTION },
  transport: { kind: ANY, name: TEXT, optionsSchema: SCHEMA, create: FUNCTION },
};
const REQUIRED_FIELDS: readonly string[] = ['name', 'apiVersion', 'setup', 'create'];

const MEMORY = { snapshot: FUNCTION, restore: FUNCTION } as const;

/** Methods and flags of a policy, by its slot. */
const POLICIES: { readonly [Slot in SlotName]: Rules<NamesOf<PolicySlots[Slot]>> } = {
  workerSelection: {
    ...{ reach: REACH, weighsResources: FLAG, placesRootish: FLAG },
    ...{ prepare: FUNCTION, admits: FUNCTION },
    ...{ score: FUNCTION, select: FUNCTION, pickFromPool: FUNCTION, ...MEMORY },
  },
  queuing: {
    ...{ holdsBack: FLAG, leavesPlacement: FLAG, prepare: FUNCTION, isRootish: FUNCTION },
    ...{ slotLimit: FUNCTION, selectRootish: FUNCTION, nextQueued: FUNCTION },
    ...{ priorityChanged: FUNCTION, ...MEMORY },
  },
  ordering: { order: FUNCTION, ...MEMORY },
  fairness: { isPerTask: FLAG, generations: FUNCTION, taskOver: FUNCTION, ...MEMORY },
  stealing: {
    ...{ begin: FUNCTION, mayTake: FUNCTION, victims: FUNCTION, levelOf: FUNCTION },
    ...{ order: FUNCTION, pays: FUNCTION, mayPay: FUNCTION },
  },
};

/** Names of the methods and flags of a policy. */
export function membersOf(slot: SlotName): readonly string[] {
  return Object.keys(POLICIES[slot]);
}

/** One object may fill several slots. */
const IN_ANY_SLOT: ReadonlySet<string> = new Set([
  'name',
  ...Object.values(POLICIES).flatMap(Object.keys),
]);

/** The methods without which something cannot fill a slot; one of each inner list. */
const REQUIRED_METHODS: Readonly<Record<SlotName, readonly (readonly string[])[]>> = {
  workerSelection: [['score', 'select']],
  queuing: [['isRootish'], ['slotLimit'], ['selectRootish']],
  ordering: [['order']],
  fairness: [['generations']],
  stealing: [['mayTake', 'victims', 'levelOf', 'order', 'pays']],
};

/** Methods that exclude each other. */
const EXCLUSIVE: Readonly<Partial<Record<SlotName, readonly (readonly [string, string])[]>>> = {
  workerSelection: [
    ['score', 'select'],
    ['select', 'pickFromPool'],
  ],
};

const SCHEME: OptionRule = {
  wanted: 'the part of its addresses before "://", such as "tcp"',
  fits: (v) => typeof v === 'string' && /^[a-z][a-z0-9+.-]*$/.test(v),
};
const TRANSPORT: Rules<keyof Transport> = { scheme: SCHEME, listen: FUNCTION, connect: FUNCTION };

/** The fields of an executor without which no worker can use it. */
const EXECUTOR: Rules<'threadCount' | 'run' | 'close'> & Partial<Rules<keyof Executor>> = {
  threadCount: {
    ...wholeNumber(1),
    wanted: 'a whole number of tasks that it runs at once, at least 1',
  },
  run: FUNCTION,
  close: FUNCTION,
};

const MOMENT: OptionRule = { wanted: 'a number of milliseconds', fits: Number.isFinite };
const BYTE_ARRAY: OptionRule = { wanted: 'a Uint8Array', fits: (v) => v instanceof Uint8Array };
const TYPE_NAME: OptionRule = { wanted: 'text', fits: (v) => typeof v === 'string' };
const PAYLOAD: OptionRule = {
  wanted: 'an object with a name and a message, both text',
  fits: (v) => {
    const { name, message } = (v ?? {}) as Readonly<Record<string, unknown>>;
    return typeof name === 'string' && typeof message === 'string';
  },
};

/** Fields of the result of a run, by its kind. */
const RESULTS: Readonly<
  Record<ExecutionResult['kind'], Readonly<Record<string, OptionRule | undefined>>>
> = {
  success: { value: BYTE_ARRAY, type: TYPE_NAME, startMs: MOMENT, stopMs: MOMENT },
  failure: { error: PAYLOAD },
  reschedule: {},
  returned: {},
};
const RESULT_FIELDS = ['value', 'type', 'startMs', 'stopMs', 'error'] as const;

/** What can be listened to. */
const EVENTS: Readonly<Record<EventName, true>> = {
  ...{ 'worker-added': true, 'worker-removed': true, 'worker-status': true },
  ...{ 'client-added': true, 'client-removed': true, 'graph-submitted': true },
  ...{ 'task-erred': true, 'plugin-added': true, 'plugin-removed': true },
  ...{ error: true, event: true, closed: true },
};

/**
 * Checks the fields of a definition. One that is unknown is refused when it is a function, which nothing would
 * ever call, or when it looks like a known one; others are for people.
 * @throws YardmasterError `ERR_PLUGIN_LOAD` with every problem
 */
export function checkDefinition(
  kind: keyof typeof DEFINITIONS,
  definition: object,
  source: string,
): void {
  const rules: Readonly<Record<string, OptionRule>> = DEFINITIONS[kind];
  const known = Object.keys(rules);
  const fields = definition as Readonly<Record<string, unknown>>;
  const required = REQUIRED_FIELDS.filter((name) => Object.hasOwn(rules, name));
  const isFree = (name: string): boolean =>
    name.startsWith('_') || (typeof fields[name] !== 'function' && !isLike(name, known));
  const unknown = Object.keys(fields).filter(
    (name) => !Object.hasOwn(rules, name) && !isFree(name),
  );
  const problems = [
    ...unknown.map(
      (name) => `there is no field "${name}"${hint(name, known)}; there are ${known.join(', ')}`,
    ),
    ...problemsOf(fields, rules, required),
  ];
  const { name, apiVersion } = fields;
  if (typeof apiVersion === 'number' && apiVersion !== PLUGIN_API_VERSION) {
    problems.push('install a version of it that is written for this version of the contract');
  }
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

/**
 * Checks what fills a slot. What would silently never be asked is refused, too: misspelt methods and flags, and
 * in a plain object methods that no slot has. A class may have further methods; names that begin with `_` are
 * free.
 * @throws YardmasterError `ERR_SLOT`
 */
export function checkPolicy(slot: SlotName, policy: unknown, source: string): void {
  const methods = (policy ?? {}) as Readonly<Record<string, unknown>>;
  const refuse = (what: string, data: object): never => {
    const message = `${source} cannot fill the slot ${slot}: ${what}`;
    throw new YardmasterError('ERR_SLOT', message, { slot, ...data });
  };
  const rules = POLICIES[slot] as Readonly<Record<string, OptionRule>>;
  const known = Object.keys(rules);
  const [name, advice] = neverAsked(methods, known) ?? [];
  if (name !== undefined)
    refuse(`it has "${name}", which nothing asks for${advice}`, { name, known });
  const [problem] = problemsOf(methods, rules);
  if (problem !== undefined) refuse(`its ${problem}`, { problem });
  const has = (method: string): boolean => methods[method] !== undefined;
  for (const pair of EXCLUSIVE[slot] ?? []) {
    if (!pair.every(has)) continue;
    refuse(`it has both ${pair.join(' and ')}; keep one of them`, { present: pair });
  }
  for (const names of REQUIRED_METHODS[slot]) {
    if (!names.some(has)) refuse(`it has no method ${names.join(' or ')}`, { missing: names });
  }
}

/** A name that nothing will ever ask for, and what to do about it. */
function neverAsked(policy: object, known: readonly string[]): [string, string] | undefined {
  const prototype: unknown = Object.getPrototypeOf(policy);
  const isPlain = prototype === Object.prototype || prototype === null;
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
    if (isPlain && methods.includes(name)) {
      return [name, `; there are ${known.join(', ')}; a method of its own begins with _`];
    }
  }
  return undefined;
}

/** @throws YardmasterError `ERR_PLUGIN_LOAD` when it cannot be used as a transport */
export function checkTransport(value: unknown, source: string): asserts value is Transport {
  checkObject(value, TRANSPORT, `${source} is no transport that can be used`, 'ERR_PLUGIN_LOAD');
}

/** @throws YardmasterError `ERR_EXECUTOR` when it cannot be used as an executor */
export function checkExecutor(value: unknown): asserts value is Executor {
  checkObject(value, EXECUTOR, `the executor ${classOf(value)} cannot be used`, 'ERR_EXECUTOR');
}

/**
 * The result with which an executor ended a run; a failure that names the executor when it is none.
 * @param what - what was run: `the task "x"`
 */
export function checkedResult(
  executor: Executor,
  result: ExecutionResult | undefined,
  what: string,
): ExecutionResult {
  const fields = result as Readonly<Record<string, unknown>> | null | undefined;
  const kind = fields?.['kind'] as ExecutionResult['kind'] | undefined;
  const rules = kind === undefined || !Object.hasOwn(RESULTS, kind) ? undefined : RESULTS[kind];
  const isRight =
    rules !== undefined && RESULT_FIELDS.every((name) => rules[name]?.fits(fields?.[name]) ?? true);
  if (isRight) return result as ExecutionResult;
  const problems =
    rules === undefined
      ? [`there are results of the kinds ${Object.keys(RESULTS).join(', ')}`]
      : problemsOf(fields ?? {}, rules, Object.keys(rules)).map((problem) => `its ${problem}`);
  const error = new YardmasterError(
    'ERR_EXECUTOR',
    `the executor ${classOf(executor)} ended ${what} with ${show(result)}, which is no result: ${problems.join('; ')}`,
    { executor: classOf(executor) },
  );
  return { kind: 'failure', error: toErrorPayload(error) };
}

/** What is wrong with a listener, for a message; undefined: nothing is. */
export function complaintAboutListener(name: unknown, listener: unknown): string | undefined {
  const known = Object.keys(EVENTS);
  if (typeof name !== 'string' || !Object.hasOwn(EVENTS, name)) {
    const near = typeof name === 'string' ? hint(name, known) : '';
    return `there is no event ${show(name)}${near}; there are ${known.join(', ')}`;
  }
  if (typeof listener === 'function') return undefined;
  return `a listener of the event "${name}" must be a function, got ${show(listener)}`;
}

/** Name of the class of a value, for messages. */
function classOf(value: unknown): string {
  const { constructor } = (value ?? {}) as { constructor?: { name?: string } };
  const name = constructor?.name ?? '';
  return name === '' || name === 'Object' ? show(value) : name;
}

function checkObject(
  value: unknown,
  rules: Readonly<Record<string, OptionRule>>,
  what: string,
  code: ErrorCode,
): void {
  const isObject = typeof value === 'object' && value !== null;
  const problems = isObject
    ? problemsOf(value as Readonly<Record<string, unknown>>, rules, Object.keys(rules)).map(
        (problem) => `its ${problem}`,
      )
    : [`it is ${show(value)} and no object`];
  if (problems.length === 0) return;
  throw new YardmasterError(code, `${what}: ${problems.join('; ')}`, { problems });
}

/** What is wrong with the fields that have rules. */
function problemsOf(
  fields: Readonly<Record<string, unknown>>,
  rules: Readonly<Record<string, OptionRule | undefined>>,
  required: readonly string[] = [],
): string[] {
  return Object.entries(rules).flatMap(([name, rule]) => {
    const value = fields[name];
    const isMissing = value === undefined;
    if (rule === undefined) return [];
    if (isMissing ? !required.includes(name) : rule.fits(value)) return [];
    return [`${name} must be ${rule.wanted}, got ${show(value)}`];
  });
}

function isLike(name: string, known: readonly string[]): boolean {
  const meant = nearest(name, known);
  return meant !== undefined && isMisspelt(simplify(name), simplify(meant));
}
