import {
  type ActiveMemoryManagerPolicy,
  drop,
  MEMORY_MEASURES,
  type MemoryMeasure,
  replicate,
  type Suggestion,
  type SuggestionGenerator,
  type WorkerView,
} from '../../core/api/index.ts';
import type { Outbox } from '../../core/kernel/outbox.ts';
import { MemoryManager } from '../../plugins/amm/memory-manager.ts';
import { EnsureBroadcast } from '../../policies/amm/ensure-broadcast.ts';
import { planRebalance } from '../../policies/amm/balance-memory.ts';
import { ReduceReplicas } from '../../policies/amm/reduce-replicas.ts';
import { RetireWorker } from '../../policies/amm/retire-worker.ts';
import { ScriptedPolicy } from './scripted-policy.ts';
import type {
  AmmPolicySpec,
  AmmRun,
  Rebalance,
  TraceConfig,
  TraceStimulus,
} from './trace-format.ts';
import { NO_OUTPUT, TraceKernel } from './trace-kernel.ts';
import { putInCanonicalOrder } from './canonical-order.ts';

/** A suggestion and its fate, in the form of the traces. */
export interface JudgedSuggestion {
  readonly op: string;
  readonly key: string;
  readonly candidates: readonly string[] | null;
  readonly accepted: boolean;
  readonly worker: string | null;
}

/** What a round of the manager did, in the form of the traces. */
export interface AmmReport {
  readonly suggestions: JudgedSuggestion[];
  readonly workersMemoryBefore: Readonly<Record<string, number>>;
  readonly retire: Readonly<Record<string, Readonly<Record<string, boolean>>>>;
}

/** What a rebalance would do. */
export interface RebalanceReport {
  readonly moveCount: number;
  readonly nbytesAfterMoves: Readonly<Record<string, number>>;
}

/** A kernel with a memory manager beside it, as in the recordings: a new one for every round. */
export class AmmKernel extends TraceKernel {
  report: AmmReport | undefined;
  rebalanced: RebalanceReport | undefined;

  constructor(private readonly traceConfig: TraceConfig) {
    super(traceConfig);
  }

  override apply(stimulus: TraceStimulus): Outbox {
    this.report = undefined;
    this.rebalanced = undefined;
    if (stimulus.op === 'ammRun') return this.runRound(stimulus);
    if (stimulus.op === 'rebalance') return this.plan(stimulus);
    return super.apply(stimulus);
  }

  private runRound({ policies: specs }: AmmRun): Outbox {
    const nowMs = this.tick();
    const { cluster } = this.kernel;
    putInCanonicalOrder(cluster);
    let outbox = NO_OUTPUT;
    const manager = new MemoryManager({
      cluster: () => cluster,
      measure: measureNamed(this.traceConfig.ammMeasure),
      nowMs: () => nowMs,
      enact: (moves) => {
        const stimulusId = `amm-${nowMs}`;
        outbox = this.kernel.handle({ op: 'move-replicas', ...moves, stimulusId }, nowMs);
      },
      judge: (_policy, failure) => {
        if (failure !== undefined) throw failure;
      },
    });
    const measure = measureNamed(this.traceConfig.ammMeasure);
    const before = cluster.workersByRank.map((worker) => [worker.address, worker.memory[measure]]);
    const suggestions: JudgedSuggestion[] = [];
    const policies = specs.map((spec) => this.policy(spec));
    for (const policy of policies) manager.policies.add(recorded(policy, suggestions));
    manager.runOnce();
    const retiring = policies.filter((policy) => policy instanceof RetireWorker);
    this.report = {
      suggestions,
      workersMemoryBefore: Object.fromEntries(before) as Record<string, number>,
      retire: Object.fromEntries(
        retiring.map((policy) => [
          policy.options.address,
          {
            noRecipients: policy.noRecipients,
            done: !manager.policies.has(policy) || policy.unique().count === 0,
            stillRegistered: manager.policies.has(policy),
          },
        ]),
      ),
    };
    return outbox;
  }

  private plan({ workers, keys }: Rebalance): Outbox {
    this.tick();
    const { cluster } = this.kernel;
    const { traceConfig } = this;
    const moves = planRebalance(
      cluster.workersByRank.filter(({ address }) => workers?.includes(address) !== false),
      {
        measure: measureNamed(traceConfig.rebalanceMeasure),
        senderMin: traceConfig.senderMin ?? 0.3,
        recipientMax: traceConfig.recipientMax ?? 0.6,
        gap: traceConfig.gap ?? 0.1,
      },
      (task) => keys?.includes(task.key) !== false,
    );
    const nbytes = new Map<WorkerView, number>(cluster.workersByRank.map((w) => [w, w.nbytes]));
    for (const { task, from, to } of moves) {
      nbytes.set(from, (nbytes.get(from) ?? 0) - task.nbytes);
      nbytes.set(to, (nbytes.get(to) ?? 0) + task.nbytes);
    }
    this.rebalanced = {
      moveCount: moves.length,
      nbytesAfterMoves: Object.fromEntries([...nbytes].map(([w, bytes]) => [w.address, bytes])),
    };
    return NO_OUTPUT;
  }

  private policy(spec: AmmPolicySpec): ActiveMemoryManagerPolicy<unknown> {
    switch (spec.type) {
      case 'reduceReplicas':
        return new ReduceReplicas({});
      case 'retireWorker':
        return new RetireWorker({ address: spec.address });
      case 'ensureBroadcast':
        return new EnsureBroadcast({ key: spec.key });
      case 'list':
        return new ScriptedPolicy(spec.suggestions.flatMap((item) => this.suggestions(item)));
    }
  }

  private suggestions({
    op,
    key,
    times = 1,
    candidates,
  }: Extract<AmmPolicySpec, { type: 'list' }>['suggestions'][number]): Suggestion[] {
    const { cluster } = this.kernel;
    const task = cluster.tasks.get(key);
    if (task === undefined) return [];
    const workers = candidates?.flatMap((address) => cluster.workers.get(address) ?? []);
    const suggestion = op === 'drop' ? drop(task, workers) : replicate(task, workers);
    return Array.from({ length: times }, () => suggestion);
  }
}

/** Dask's names of measures, old and new. */
function measureNamed(name = 'optimistic'): MemoryMeasure {
  const older: Readonly<Record<string, MemoryMeasure>> = {
    managed_in_memory: 'managed',
    managed_spilled: 'spilled',
  };
  const camel = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  const measure = older[name] ?? MEMORY_MEASURES.find((known) => known === camel);
  if (measure === undefined) throw new Error(`unknown measure ${name}`);
  return measure;
}

/** The policy itself, whose suggestions are written down together with what became of them. */
function recorded(
  policy: ActiveMemoryManagerPolicy<unknown>,
  judged: JudgedSuggestion[],
): ActiveMemoryManagerPolicy<unknown> {
  const run = policy.run.bind(policy);
  policy.run = function* (amm): SuggestionGenerator {
    const inner = run(amm);
    let step = inner.next();
    while (step.done !== true) {
      const { op, task, candidates } = step.value;
      const worker = yield step.value;
      const addresses = candidates === undefined ? null : [...candidates].map((w) => w.address);
      judged.push({
        op,
        key: task.key,
        candidates: addresses,
        accepted: worker !== undefined,
        worker: worker?.address ?? null,
      });
      step = inner.next(worker);
    }
  };
  return policy;
}
