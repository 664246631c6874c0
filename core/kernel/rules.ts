import { messageOf, YardmasterError } from '../api/errors.ts';
import type { Rule } from '../api/rules.ts';
import type { TaskRules } from '../state/cluster.ts';
import type { TaskState, WorkerState } from '../state/task.ts';
import { nameAnswer } from './ask-policy.ts';
import type { NamedRule } from './ports.ts';
import { describeRestrictions, isSuited, suitableWorkers } from './restrictions.ts';
import type { KernelScope } from './scope.ts';

// The rules of extensions, which are asked beside the policies.

/** A rule, and whether it concerns the task that the rules were asked about last. */
interface Member extends NamedRule {
  isConcerned: boolean;
}

/**
 * Asks the rules. What one throws is reported, and the decision is made without it; in validate mode it is an error.
 */
export class RuleBook implements TaskRules {
  private readonly choosers: readonly Member[];
  private readonly filters: readonly Member[];
  private readonly scorers: readonly Member[];
  private readonly holders: readonly Member[];
  private readonly movers: readonly Member[];
  // Asked for each task: a flag costs less than the length of a list.
  private readonly hasFilters: boolean;
  private readonly hasScorers: boolean;
  private readonly hasHolders: boolean;
  /** The task that `isConcerned` is about, and the stimulus in which it was asked for. */
  private task: TaskState | undefined;
  private stimulus: KernelScope['stimulus'];

  constructor(
    private readonly scope: KernelScope,
    private readonly ports = scope.ports,
  ) {
    const members = ports.rules.map((rule) => ({ ...rule, isConcerned: true }));
    const having = (question: keyof Rule): readonly Member[] =>
      members.filter(({ policy }) => policy[question] !== undefined);
    this.choosers = having('concerns');
    this.filters = having('filter');
    this.scorers = having('score');
    this.holders = having('holds');
    this.movers = having('mayMove');
    this.hasFilters = this.filters.length > 0;
    this.hasScorers = this.scorers.length > 0;
    this.hasHolders = this.holders.length > 0;
  }

  isFiltered(task: TaskState): boolean {
    return this.hasFilters && this.anyConcerned(this.filters, task);
  }

  isScored(task: TaskState): boolean {
    return this.hasScorers && this.anyConcerned(this.scorers, task);
  }

  isTied(task: TaskState): boolean {
    return this.anyConcerned(this.movers, task);
  }

  allows(task: TaskState, worker: WorkerState): boolean {
    if (!this.isFiltered(task)) return true;
    for (const rule of this.filters) {
      if (rule.isConcerned && this.vetoOf(rule, task, worker) !== undefined) return false;
    }
    return true;
  }

  mayMove(task: TaskState, victim: WorkerState, thief: WorkerState): boolean {
    if (!this.isTied(task)) return true;
    for (const rule of this.movers) {
      if (!rule.isConcerned) continue;
      const { cluster } = this.scope;
      if (this.ask(rule, 'mayMove', isFlag, task, victim, thief, cluster) === false) return false;
    }
    return true;
  }

  isHeld(task: TaskState): boolean {
    if (!this.hasHolders || !this.anyConcerned(this.holders, task)) return false;
    for (const rule of this.holders) if (this.holdOf(rule, task) !== undefined) return true;
    return false;
  }

  /** Names of the rules that score the task, with their weights. */
  scorersOf(task: TaskState): string[] {
    if (!this.isScored(task)) return [];
    const concerned = this.scorers.filter(({ isConcerned }) => isConcerned);
    return concerned.map(({ name, weight }) => `${weight} × ${name}`);
  }

  /** The weighted scores of the rules for each of the workers, summed. O(workers * rules). */
  scores(task: TaskState, workers: readonly WorkerState[]): number[] {
    const sums = workers.map(() => 0);
    if (!this.isScored(task)) return sums;
    const { cluster } = this.scope;
    for (const rule of this.scorers) {
      if (!rule.isConcerned) continue;
      const scores: number[] = [];
      for (const worker of workers) {
        const score = this.ask(rule, 'score', Number.isFinite, task, worker, cluster);
        if (score === undefined) break;
        scores.push(score as number);
      }
      if (scores.length === workers.length) addScores(sums, scores, rule.weight);
    }
    return sums;
  }

  reasonOf(task: TaskState): string | undefined {
    const { cluster } = this.scope;
    const reasons = this.holds(task);
    if (cluster.running.size === 0) reasons.push('no worker is running');
    if (cluster.running.size === 0 || isSuited(cluster, task))
      return reasons.join(', ') || undefined;
    if (suitableWorkers(cluster, task)?.size === 0) {
      const demands = describeRestrictions(cluster, task);
      reasons.push(`no running worker satisfies its restrictions: ${demands}`);
    }
    return reasons.concat(this.vetoes(task) ?? []).join(', ');
  }

  /** Names each rule that holds the task back. */
  private holds(task: TaskState): string[] {
    if (!this.anyConcerned(this.holders, task)) return [];
    return this.holders.flatMap((rule) => {
      const why = this.holdOf(rule, task);
      if (why === undefined) return [];
      return [`the rule ${rule.name} holds it back${why === '' ? '' : ` (${why})`}`];
    });
  }

  /** Names each rule that refuses running workers for the task; undefined when none does. O(workers * rules). */
  vetoes(task: TaskState): string | undefined {
    if (!this.isFiltered(task)) return undefined;
    const workers = [...this.scope.cluster.running];
    const found = this.filters.flatMap((rule) => {
      const vetoes = workers.map((worker) =>
        rule.isConcerned ? this.vetoOf(rule, task, worker) : undefined,
      );
      const refused = vetoes.filter((veto) => veto !== undefined);
      if (refused.length === 0) return [];
      const reasons = [...new Set(refused)].filter((reason) => reason !== '').slice(0, REASONS_MAX);
      const why = reasons.length === 0 ? '' : ` (${reasons.join('; ')})`;
      return [`the rule ${rule.name} refuses ${refused.length} of ${workers.length} workers${why}`];
    });
    return found.length === 0 ? undefined : found.join(', ');
  }

  private anyConcerned(rules: readonly Member[], task: TaskState): boolean {
    if (rules.length === 0) return false;
    const { stimulus } = this.scope;
    if (task !== this.task || stimulus !== this.stimulus || stimulus === undefined) this.look(task);
    for (const { isConcerned } of rules) if (isConcerned) return true;
    return false;
  }

  private look(task: TaskState): void {
    this.task = task;
    this.stimulus = this.scope.stimulus;
    for (const rule of this.choosers) {
      rule.isConcerned = this.ask(rule, 'concerns', isFlag, task) === true;
    }
  }

  /** The reason why a rule refuses the worker, perhaps an empty one; undefined when it does not. */
  private vetoOf(rule: Member, task: TaskState, worker: WorkerState): string | undefined {
    const answer = this.ask(rule, 'filter', isVerdict, task, worker, this.scope.cluster);
    if (answer === undefined || answer === true) return undefined;
    return answer === false ? '' : (answer as Refusal).refuse;
  }

  /** The reason why a rule holds the task back, perhaps an empty one; undefined when it does not. */
  private holdOf(rule: Member, task: TaskState): string | undefined {
    if (!rule.isConcerned) return undefined;
    const answer = this.ask(rule, 'holds', isHolding, task, this.scope.cluster);
    if (answer === undefined || answer === false) return undefined;
    return answer === true ? '' : (answer as Hold).hold;
  }

  /** The answer of a rule; undefined when it throws, or gives one that cannot be used. */
  private ask(
    rule: Member,
    question: keyof Rule,
    isUsable: (answer: unknown) => boolean,
    task: TaskState,
    b?: unknown,
    c?: unknown,
    d?: unknown,
  ): unknown {
    let what: string;
    let cause: unknown;
    try {
      const { policy } = rule;
      const answer: unknown = (policy[question] as Method).call(policy, task, b, c, d);
      // It may have asked the cluster which workers suit another task.
      if (task !== this.task) this.look(task);
      if (isUsable(answer)) {
        this.ports.onPolicyAnswer?.(rule);
        return answer;
      }
      what = `answered ${question} with ${nameAnswer(answer)} instead of ${WANTED[question]}`;
    } catch (thrown) {
      what = `threw in ${question}: ${messageOf(thrown)}`;
      cause = thrown;
    }
    const { name } = rule;
    const message = `the rule "${name}" ${what}; the decision was made without it`;
    const error = new YardmasterError('ERR_POLICY', message, { rule: name }, { cause });
    this.ports.onPolicyFailure({ question: rule, slot: `rule ${name}`, policy: name, what, error });
    if (this.scope.options.validate) throw error;
    return undefined;
  }
}

/** Reasons of one rule that are quoted. */
const REASONS_MAX = 3;

type Method = (...subject: unknown[]) => unknown;

type Refusal = Exclude<ReturnType<NonNullable<Rule['filter']>>, boolean>;
type Hold = Exclude<ReturnType<NonNullable<Rule['holds']>>, boolean>;

/** The answers that can be used. */
const WANTED: Readonly<Record<keyof Rule, string>> = {
  concerns: 'true or false',
  filter: "true, false or { refuse: 'why' }",
  score: 'a finite number',
  holds: "true, false or { hold: 'why' }",
  mayMove: 'true or false',
};

function isFlag(answer: unknown): boolean {
  return typeof answer === 'boolean';
}

function isVerdict(answer: unknown): boolean {
  return (
    isFlag(answer) || typeof (answer as Partial<Refusal> | null | undefined)?.refuse === 'string'
  );
}

function isHolding(answer: unknown): boolean {
  return isFlag(answer) || typeof (answer as Partial<Hold> | null | undefined)?.hold === 'string';
}

/** Brings the scores to 0..1, the lowest to 0, and adds them with a weight; equal ones add nothing. */
export function addScores(sums: number[], scores: readonly number[], weight: number): void {
  const least = Math.min(...scores);
  const range = Math.max(...scores) - least;
  if (range === 0) return;
  for (const [index, score] of scores.entries()) {
    sums[index] = (sums[index] as number) + (weight * (score - least)) / range;
  }
}
