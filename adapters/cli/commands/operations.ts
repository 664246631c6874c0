import {
  type AmmRound,
  type AmmStatus,
  type SlotName,
  type TaskSummary,
  YardmasterError,
} from '../../../core/api/index.ts';
import { sizeText } from '../../../core/util/units.ts';
import { countOf, printable } from '../../../core/util/values.ts';
import type { Client, SchedulerIdentity } from '../../client/index.ts';
import { say, textTable } from '../terminal.ts';
import { type ClientFlags, print, withClient } from '../with-client.ts';

export interface AmmFlags extends ClientFlags {
  readonly options?: Readonly<Record<string, unknown>>;
  /** Milliseconds. */
  readonly interval?: number;
  readonly measure?: string;
}

/** `yardmaster amm` and what it does with `start` and `stop`. Prints the state after that, as the next ones do. */
export function ammCommand(action: 'status' | 'start' | 'stop', flags: AmmFlags): Promise<number> {
  return withAmm(flags, async ({ amm }) => {
    if (action !== 'status') await amm[action]();
  });
}

export function setAmm(flags: AmmFlags): Promise<number> {
  return withAmm(flags, ({ amm }) => amm.configure(settingsIn(flags)));
}

export function addAmmPolicy(policy: string, flags: AmmFlags): Promise<number> {
  return withAmm(flags, ({ amm }) => amm.addPolicy(policy, flags.options));
}

/** `yardmaster amm remove`: the policy with this id, or all of this name. */
export function removeAmmPolicy(policy: string, flags: AmmFlags): Promise<number> {
  return withAmm(flags, ({ amm }) => amm.removePolicy(policy));
}

/** `yardmaster amm run`. Exit code 1 when a policy failed. */
export function runAmm(flags: AmmFlags): Promise<number> {
  return withClient(flags, 'amm', async (client) => {
    const round = await client.amm.runOnce();
    print(round, roundText(round), flags);
    return round.failures.length === 0 ? 0 : 1;
  });
}

async function withAmm(
  flags: AmmFlags,
  act: (client: Client) => Promise<unknown>,
): Promise<number> {
  return withClient(flags, 'amm', async (client) => {
    await act(client);
    const status = await client.amm.status();
    print(status, statusText(status), flags);
    return 0;
  });
}

function settingsIn({ interval, measure }: AmmFlags): Parameters<Client['amm']['configure']>[0] {
  return {
    intervalMs: interval,
    ...(measure === undefined ? {} : { measure: measure as AmmStatus['measure'] }),
  };
}

function statusText({ running, intervalMs, measure, policies, lastRound }: AmmStatus): string {
  const lines = policies.map(({ id, name, options }) => {
    const isPlain = options === undefined || Object.keys(options).length === 0;
    const given = isPlain ? '' : ` ${JSON.stringify(options)}`;
    return `- ${id === name ? name : `${name} (${id})`}${given}`;
  });
  return [
    `${running ? 'running' : 'stopped'}, interval ${intervalMs} ms, measure ${measure}`,
    ...(lines.length === 0 ? ['no policies'] : lines),
    ...(lastRound === undefined ? [] : [`last round: ${roundText(lastRound)}`]),
  ].join('\n');
}

function roundText({ suggested, accepted, underWay, refusals, failures }: AmmRound): string {
  return [
    `accepted ${accepted} of ${countOf(suggested, 'suggestion')}, ${countOf(underWay, 'copy', 'copies')} under way`,
    ...refusals.map(
      ({ reason, count, example }) => `refused ${count}: ${reason} (such as ${example})`,
    ),
    ...failures.map(({ policy, message }) => `${policy} failed: ${message}`),
  ].join('\n');
}

export interface ReplaceFlags extends ClientFlags {
  readonly options?: Readonly<Record<string, unknown>>;
}

export function listPolicies(flags: ClientFlags): Promise<number> {
  return withClient(flags, 'policy', (client) => printPolicies(client, flags));
}

export function replacePolicy(slot: string, use: string, flags: ReplaceFlags): Promise<number> {
  return withClient(flags, 'policy', async (client) => {
    await client.policies.replace(slot as SlotName, use, flags.options);
    return printPolicies(client, flags);
  });
}

export function restorePolicy(slot: string, flags: ClientFlags): Promise<number> {
  return withClient(flags, 'policy', async (client) => {
    await client.policies.restore(slot as SlotName);
    return printPolicies(client, flags);
  });
}

async function printPolicies(client: Client, flags: ClientFlags): Promise<number> {
  const policies = await client.policies.current();
  print(policies, textTable(['slot', 'policy'], Object.entries(policies)), flags);
  return 0;
}

export interface RetireFlags extends ClientFlags {
  readonly count?: number;
  readonly target?: number;
  /** False: they stay, without tasks and data. */
  readonly close?: boolean;
}

const KEPT_CODE = 1;

/** `yardmaster retire`. Exit code 1 when one of the workers was kept. */
export function retireCommand(workers: readonly string[], flags: RetireFlags): Promise<number> {
  const { count, target } = flags;
  const ways = [workers.length > 0, count !== undefined, target !== undefined].filter(Boolean);
  if (ways.length !== 1) {
    throw new YardmasterError(
      'ERR_CONFIG',
      'say which workers to retire: by addresses, names or hosts, or by --count, or by --target; one of these',
    );
  }
  return withClient(flags, 'retire', async (client) => {
    const answer = await client.retireWorkers({
      ...(workers.length > 0 ? { workers } : {}),
      ...(count === undefined ? {} : { n: count }),
      ...(target === undefined ? {} : { target }),
      ...(flags.close === false ? { close: false } : {}),
    });
    const { retired, kept } = answer;
    const lines = [
      ...retired.map(({ name, address }) => `retired ${name} (${address})`),
      ...kept.map(({ worker, reason }) => `kept ${worker}: ${reason}`),
    ];
    print(answer, lines.map(printable).join('\n') || 'no worker was to be retired', flags);
    return kept.length === 0 ? 0 : KEPT_CODE;
  });
}

export interface TasksFlags extends ClientFlags {
  readonly state?: string;
  readonly prefix?: string;
  readonly limit?: number;
}

interface PrefixCounts {
  readonly prefix: string;
  readonly states: Readonly<Record<string, number>>;
}

const STATES = ['waiting', 'no-worker', 'queued', 'processing', 'memory', 'erred', 'released'];
const UNKNOWN_CODE = 1;

/** `yardmaster tasks`: counts by prefix; with keys or a selection, the tasks themselves. */
export function tasksCommand(keys: readonly string[], flags: TasksFlags): Promise<number> {
  const { state, prefix, limit } = flags;
  const isSelected = (state ?? prefix ?? limit) !== undefined;
  if (keys.length > 0 && isSelected) {
    throw new YardmasterError(
      'ERR_CONFIG',
      'say which tasks: by their keys, or by --state, --prefix and --limit',
    );
  }
  return withClient(flags, 'tasks', async (client) => {
    if (keys.length > 0) {
      const tasks = await client.command<readonly TaskSummary[]>('tasks', { keys });
      print(tasks, tasksText(tasks), flags);
      const known = new Set(tasks.map(({ key }) => key));
      const unknown = keys.filter((key) => !known.has(key));
      if (unknown.length === 0) return 0;
      say(`the scheduler does not know ${unknown.join(', ')}\n`, process.stderr);
      return UNKNOWN_CODE;
    }
    if (!isSelected) {
      const counts = await client.command<readonly PrefixCounts[]>('task-counts');
      print(counts, countsText(counts), flags);
      return 0;
    }
    const selection = Object.fromEntries(
      Object.entries({ state, prefix, limit }).filter(([, value]) => value !== undefined),
    );
    const tasks = await client.command<readonly TaskSummary[]>('list-tasks', selection);
    print(tasks, tasksText(tasks), flags);
    return 0;
  });
}

function countsText(counts: readonly PrefixCounts[]): string {
  if (counts.length === 0) return 'no tasks';
  const total: PrefixCounts = {
    prefix: 'all',
    states: Object.fromEntries(
      STATES.map((state) => [
        state,
        counts.reduce((sum, { states }) => sum + (states[state] ?? 0), 0),
      ]),
    ),
  };
  const shown = counts.length === 1 ? counts : [...counts, total];
  const rows = shown.map(({ prefix, states }) => [
    prefix,
    ...STATES.map((state) => states[state] ?? 0),
  ]);
  return textTable(['prefix', ...STATES], rows);
}

function tasksText(tasks: readonly TaskSummary[]): string {
  if (tasks.length === 0) return 'no tasks';
  const rows = tasks.map(({ key, state, processingOn, whoHas, nbytes }) => [
    key,
    state,
    processingOn ?? whoHas.join(' '),
    nbytes < 0 ? '' : sizeText(nbytes),
  ]);
  return textTable(['key', 'state', 'worker', 'stored'], rows);
}

const TITLES = ['name', 'address', 'status', 'threads', 'tasks', 'results', 'stored', 'memory'];

export function workersCommand(flags: ClientFlags): Promise<number> {
  return withClient(flags, 'workers', async (client) => {
    const { workers } = await client.identity();
    const text = workers.length === 0 ? 'no workers' : textTable(TITLES, workers.map(rowOf));
    print(workers, text, flags);
    return 0;
  });
}

function rowOf(worker: SchedulerIdentity['workers'][number]): (string | number)[] {
  const { name, address, status, threadCount, processingCount, resultCount, nbytes } = worker;
  const { metrics, memoryLimitBytes } = worker;
  const limit = memoryLimitBytes > 0 ? ` of ${sizeText(memoryLimitBytes)}` : '';
  const memory = `${sizeText(metrics.memoryBytes)}${limit}`;
  const counts = [threadCount, processingCount, resultCount];
  return [name, address, status, ...counts, sizeText(nbytes), memory];
}
