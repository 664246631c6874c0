import { SchedulerEnv, type EnvOptions } from '../kit/env.ts';
import type { TerseGraph, TerseTask } from '../kit/graph.ts';
import { nameOf, recordInShort } from '../kit/in-short.ts';

/** A command with what it gives, as it stands in a story. */
export interface Scene {
  /** Comments and blank lines before it. */
  readonly before: readonly string[];
  readonly command: readonly string[];
  readonly expected: readonly string[];
}

const DIVIDER = '----';

/**
 * A story: commands, each with its input, a line of dashes, and what has to come out up to the next
 * blank line. Lines that start with `#` between them are comments.
 */
export function parseStory(text: string): Scene[] {
  const scenes: Scene[] = [];
  let before: string[] = [];
  const lines = text.trimEnd().split('\n');
  for (let at = 0; at < lines.length;) {
    const line = lines[at]!;
    if (line === '' || line.startsWith('#')) {
      before.push(line);
      at++;
      continue;
    }
    const divider = lines.indexOf(DIVIDER, at);
    if (divider < 0) throw new Error(`the command "${line}" has no ${DIVIDER}`);
    const blank = lines.indexOf('', divider);
    const end = blank < 0 ? lines.length : blank;
    scenes.push({
      before,
      command: lines.slice(at, divider),
      expected: lines.slice(divider + 1, end),
    });
    before = [];
    at = end;
  }
  return scenes;
}

export function formatStory(scenes: readonly Scene[]): string {
  const lines = scenes.flatMap(({ before, command, expected }) => {
    return [...before, ...command, DIVIDER, ...expected];
  });
  return `${lines.join('\n')}\n`;
}

/** Words and `name=value` options of a line. */
interface Words {
  readonly words: readonly string[];
  readonly options: Readonly<Record<string, string>>;
}

/** Plays the commands of one story on a real kernel. */
export class Stage {
  private env = new SchedulerEnv();

  /** What the command gives: transitions, messages by receiver, or what it was to show. */
  play([line = '', ...input]: readonly string[]): string[] {
    const { words, options } = wordsOf(line);
    const [verb = '', ...names] = words;
    if (verb === 'cluster') {
      this.env = new SchedulerEnv(clusterOptions(options));
      return [];
    }
    if (verb === 'show') return this.show(names[0] ?? '');
    const before = this.env.kernel.transitionCounter;
    this.act(verb, names, options, input);
    const count = this.env.kernel.transitionCounter - before;
    const records = count === 0 ? [] : this.env.kernel.story().slice(-count);
    return [...records.map(recordInShort), ...this.messages()];
  }

  private act(
    verb: string,
    names: readonly string[],
    options: Words['options'],
    input: readonly string[],
  ): void {
    const { env } = this;
    const [name = ''] = names;
    switch (verb) {
      case 'worker':
        for (const worker of names)
          env.addWorker(worker, { threads: Number(options['threads'] ?? 1) });
        return;
      case 'remove':
        return env.removeWorker(name);
      case 'pause':
        return env.setStatus(name, 'paused');
      case 'unpause':
        return env.setStatus(name, 'running');
      case 'submit':
        env.advance(1).submit(graphOf(input), submitOptions(options));
        return;
      case 'scatter':
        return env.scatter({ [name]: (options['on'] ?? '').split(',') });
      case 'finish':
        for (const key of names)
          env.finish(key, {
            ...number('durationS', options['s']),
            ...number('runId', options['run']),
          });
        return;
      case 'fail':
        env.fail(name);
        return;
      case 'secede':
        return env.secede(name, number('durationS', options['s']));
      case 'retry':
        return env.retry(...names);
      case 'release':
        return env.release(...names);
      case 'cancel':
        return env.cancel(names);
      default:
        throw new Error(`unknown command "${verb}"`);
    }
  }

  private messages(): string[] {
    const { env } = this;
    const { workersByRank, clients } = env.cluster;
    const toWorkers = workersByRank.flatMap(({ address }) => {
      const name = nameOf(address);
      return env.takeWorker(name).map((message) => `${name} < ${message}`);
    });
    const toClients = [...clients.keys()].flatMap((client) =>
      env.takeClient(client).map((message) => `${client} < ${message}`),
    );
    env.takeEvents();
    env.expectEmpty();
    return [...toWorkers, ...toClients];
  }

  private show(what: string): string[] {
    const { cluster, states } = this.env;
    const tasks = [...cluster.tasks.values()];
    switch (what) {
      case 'states':
        return Object.entries(states).map(([key, state]) => `${key} ${state}`);
      case 'priorities':
        return tasks.map(({ key, priority }) => `${key} ${priority?.join(' ') ?? 'none'}`);
      case 'suspicious':
        return tasks.map(({ key, suspicious }) => `${key} ${suspicious}`);
      case 'workers':
        return cluster.workersByRank.map(({ name, processing, longRunning, occupancyS }) => {
          const counts = `processing ${processing.size}, long-running ${longRunning.size}`;
          return `${name} ${counts}, occupancy ${occupancyS}`;
        });
      case 'cluster':
        return [`running ${cluster.running.size}`, `queued ${cluster.queued.size}`];
      case 'prefixes':
        return [...cluster.prefixes.values()].map(({ name, durationAverageS }) => {
          return `${name} average ${durationAverageS}`;
        });
      default:
        throw new Error(`nothing to show about "${what}"`);
    }
  }
}

function wordsOf(line: string): Words {
  const parts = line.split(/\s+/).filter((part) => part !== '');
  const options: Record<string, string> = {};
  const words: string[] = [];
  for (const part of parts) {
    const [name, value] = part.split('=');
    if (value === undefined) words.push(part);
    else options[name!] = value;
  }
  return { words, options };
}

function clusterOptions(options: Words['options']): EnvOptions {
  const saturation = options['saturation'];
  const allowedFailures = options['allowed-failures'];
  return {
    ...(saturation === undefined
      ? {}
      : { queuing: { workerSaturation: saturation === 'inf' ? Infinity : Number(saturation) } }),
    ...(allowedFailures === undefined
      ? {}
      : { kernel: { allowedFailures: Number(allowedFailures) } }),
  };
}

function submitOptions(options: Words['options']): { keys?: string[]; submittingTask?: string } {
  const { want, inside } = options;
  return {
    ...(want === undefined ? {} : { keys: want.split(',') }),
    ...(inside === undefined ? {} : { submittingTask: inside }),
  };
}

/** Lines such as `c <- a b rank=3 retries=1 priority=10`; `r-{0..5}` stands for six tasks. */
function graphOf(lines: readonly string[]): TerseGraph {
  const graph: Record<string, TerseTask> = {};
  for (const line of lines) {
    const { words, options } = wordsOf(line);
    const [name = '', ...rest] = words;
    const task: TerseTask = {
      deps: rest.filter((word) => word !== '<-'),
      ...number('rank', options['rank']),
      ...number('retries', options['retries']),
      ...number('userPriority', options['priority']),
    };
    for (const key of expand(name)) graph[key] = task;
  }
  return graph;
}

function expand(name: string): string[] {
  const range = /^(.*)\{(\d+)\.\.(\d+)\}$/.exec(name);
  if (range === null) return [name];
  const [, prefix = '', from = '', to = ''] = range;
  const count = Number(to) - Number(from) + 1;
  return Array.from({ length: count }, (_, index) => `${prefix}${Number(from) + index}`);
}

/** An option that may be missing, as a field. */
function number<Name extends string>(
  name: Name,
  text: string | undefined,
): Readonly<Partial<Record<Name, number>>> {
  const fields = text === undefined ? [] : [[name, Number(text)] as const];
  return Object.fromEntries(fields) as Partial<Record<Name, number>>;
}
