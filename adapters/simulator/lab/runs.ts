import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import { VERSION, YardmasterError } from '../../../core/api/index.ts';
import type { SimulationOptions } from '../options.ts';
import type { SimulatedWorkload } from '../../workloads/index.ts';
import type { RunOptions, SimulationReport } from '../simulated-cluster.ts';
import { simulate } from '../simulation.ts';
import { followPlan } from './offline.ts';
import type { PolicyVariant } from './variants.ts';

/** The figures of a run that are compared. */
export const FIGURES = [
  'makespanS',
  'movedBytes',
  'peakWorkerBytes',
  'spilledBytes',
  'pauses',
  'idleShare',
  'decisions',
  'fallbacks',
] as const satisfies readonly (keyof SimulationReport)[];

/** One of {@link FIGURES}. */
export type FigureName = (typeof FIGURES)[number];

/** A simulation to be made: plain data, unless it stays in this thread. */
export interface RunRequest {
  readonly workload: SimulatedWorkload;
  readonly variant: PolicyVariant;
  readonly options: SimulationOptions & RunOptions;
}

/** The figures of a run, or the reason why it has none. */
export interface RunResult {
  readonly figures?: Readonly<Record<FigureName, number>>;
  /** It did not end well, or a policy failed each time that it was asked. */
  readonly error?: string;
}

/** The threads that simulate runs, and the runs that are known already. */
export interface MeasureOptions {
  /** Threads that simulate beside this one. 0, the default: none; this one does it. */
  readonly jobs?: number;
  /** Results of earlier runs; those that are made are added. */
  readonly known?: KnownRuns;
  /** Called after each run with the number of its request. */
  readonly onRun?: (request: number, result: RunResult) => void;
}

/**
 * Makes all the runs, several at once.
 * @returns one result for each request, in their order
 * @throws YardmasterError `ERR_CONFIG`, `ERR_PLUGIN_LOAD`, `ERR_SLOT`
 */
export async function measureAll(
  requests: readonly RunRequest[],
  { jobs = 0, known, onRun }: MeasureOptions = {},
): Promise<RunResult[]> {
  const results: RunResult[] = [];
  let next = 0;
  const work = async (run: (request: RunRequest) => Promise<RunResult>): Promise<void> => {
    for (let number = next++; number < requests.length; number = next++) {
      const request = requests[number] as RunRequest;
      const result = known?.find(request) ?? (await run(request));
      known?.add(request, result);
      results[number] = result;
      onRun?.(number, result);
    }
  };
  if (jobs === 0) {
    await work(measure);
    return results;
  }
  // Threads run the compiled package, also when this file runs uncompiled.
  const path = createRequire(import.meta.url).resolve('#lab-thread');
  const threads = Array.from({ length: Math.min(jobs, requests.length) }, () => new Worker(path));
  try {
    await Promise.all(threads.map((thread) => work((request) => measureIn(thread, request))));
  } finally {
    await Promise.all(threads.map((thread) => thread.terminate()));
  }
  return results;
}

/** Makes one run in this thread. */
export async function measure({ workload, variant, options }: RunRequest): Promise<RunResult> {
  const { config, plan } = variant;
  const own = plan === undefined ? variant.overrides : followPlan(plan, workload, options);
  const scheduler = { ...options.overrides?.scheduler, ...own?.scheduler };
  try {
    const report = await simulate(workload, {
      ...options,
      ...(config === undefined ? {} : { config }),
      overrides: { ...own, scheduler },
    });
    if (report.failed > 0) return { error: report.firstFailure ?? 'a task failed' };
    if (report.useless !== undefined) return { error: report.useless };
    const figures = Object.fromEntries(FIGURES.map((figure) => [figure, report[figure]]));
    return { figures: figures as Record<FigureName, number> };
  } catch (error) {
    if (!YardmasterError.is(error, 'ERR_TIMEOUT')) throw error;
    return { error: error.message };
  }
}

/** The answer of a thread of the laboratory. */
export type LabAnswer =
  | { readonly result: RunResult }
  | { readonly code: YardmasterError['code'] | undefined; readonly message: string };

/** Makes one run in another thread; one at a time. */
async function measureIn(thread: Worker, request: RunRequest): Promise<RunResult> {
  const over = new AbortController();
  const { signal } = over;
  thread.postMessage(request);
  const exit = once(thread, 'exit', { signal }).then(() => {
    throw new YardmasterError('ERR_POLICY', `${request.variant.name} ended the thread it ran in`);
  });
  const message = once(thread, 'message', { signal }) as Promise<[LabAnswer]>;
  const [answer] = await Promise.race([message, exit]).finally(() => over.abort());
  if ('result' in answer) return answer.result;
  throw answer.code === undefined
    ? new Error(answer.message)
    : new YardmasterError(answer.code, answer.message);
}

/**
 * Results of runs in a file, a line for each as it ends, so that an interrupted comparison can continue. A run is known
 * by its workload, its options, its policies, and the code of this package: when one of them changes, it is made again.
 */
export class KnownRuns {
  private readonly results = new Map<string, RunResult>();
  private readonly digests = new WeakMap<object, string>();
  private readonly code = codeDigest();

  /** @param file - path; it is created when the first run ends. Default: results are kept in memory alone */
  constructor(private readonly file?: string) {
    if (file === undefined || !existsSync(file)) return;
    const text = readFileSync(file, 'utf8');
    if (!text.endsWith('\n')) appendFileSync(file, '\n'); // The last line was torn.
    for (const line of text.split('\n')) {
      const entry = parsed(line);
      if (entry !== undefined) this.results.set(entry.id, entry.result);
    }
  }

  find(request: RunRequest): RunResult | undefined {
    return this.results.get(this.idOf(request));
  }

  add(request: RunRequest, result: RunResult): void {
    const id = this.idOf(request);
    if (this.results.has(id)) return;
    this.results.set(id, result);
    if (this.file === undefined) return;
    const { workload, variant, options } = request;
    const about = { workload: workload.name, policies: variant.name, seed: options.seed };
    appendFileSync(this.file, `${JSON.stringify({ id, ...about, result })}\n`);
  }

  /** A digest of the name of a graph, of its tasks and of what they cost. */
  digestOfGraph(workload: SimulatedWorkload): string {
    return this.digestOf(workload, () => {
      const { name, tasks, keys, durationsS, nbytes } = workload;
      const links = tasks.map((task) => [task.key, task.dependencies, task.prefix, task.group]);
      return JSON.stringify([name, links, keys, [...durationsS], [...nbytes]]);
    });
  }

  private idOf({ workload, variant, options }: RunRequest): string {
    const { code } = this;
    const graph = this.digestOfGraph(workload);
    const policies = this.digestOf(variant, () => variantDigest(variant));
    return digested(JSON.stringify([code, graph, policies, options]));
  }

  private digestOf(subject: object, textOf: () => string): string {
    const digest = this.digests.get(subject) ?? digested(textOf());
    this.digests.set(subject, digest);
    return digest;
  }
}

/** Undefined of a line that was torn. */
function parsed(line: string): { id: string; result: RunResult } | undefined {
  try {
    return JSON.parse(line) as { id: string; result: RunResult };
  } catch {
    return undefined;
  }
}

/** Version and digest of the code that simulates; the version alone where this package is a part of another bundle. */
export function codeDigest(): string {
  try {
    const folder = dirname(createRequire(import.meta.url).resolve('#lab-thread'));
    const files = readdirSync(folder).filter((name) => name.endsWith('.js'));
    const texts = files.sort().map((name) => readFileSync(join(folder, name), 'utf8'));
    return `${VERSION}-${digested(texts.join('\0'))}`;
  } catch {
    return VERSION;
  }
}

/** A variant as plain data. Paths are relative to this folder, so that it is the same wherever the same files are. */
export function plainVariant({ config, ...variant }: PolicyVariant): PolicyVariant {
  const path = config === undefined ? {} : { config: resolve(config) };
  const here = JSON.stringify(process.cwd()).slice(0, -1);
  const text = JSON.stringify({ ...variant, ...path }).replaceAll(`${here}/`, '"./');
  return JSON.parse(text) as PolicyVariant;
}

/** A digest of the policies of a variant, with the texts of the files that it names. */
export function variantDigest(variant: PolicyVariant): string {
  const text = JSON.stringify(plainVariant(variant));
  const texts = new Map<string, string>();
  addFiles(text, process.cwd(), texts);
  const named = [...texts].map(([file, content]) => [relative('.', file), content]);
  return digested(JSON.stringify([text, named]));
}

/** Adds the files whose paths are in a text, and those whose paths are in these. */
function addFiles(text: string, folder: string, texts: Map<string, string>): void {
  for (const [, path = ''] of text.matchAll(/["'\s]((?:\.{0,2}\/)[^"'\s#]+|[^"'\s#]+\.ya?ml)/g)) {
    const file = join(path.startsWith('/') ? '/' : folder, path);
    if (texts.has(file) || !/\.(?:[cm]?[jt]s|ya?ml|json)$/.test(file) || !existsSync(file))
      continue;
    const content = readFileSync(file, 'utf8');
    texts.set(file, content);
    addFiles(content, dirname(file), texts);
  }
}

function digested(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}
