import {
  type ApiVersion,
  checkDefinition,
  type NoOptions,
  type OnlyMembers,
  type OptionsOf,
} from './definition.ts';
import type { UseEntry } from './plugin.ts';
import { type PolicyContext, type PolicySlots, WITHOUT_LOG } from './policies.ts';
import type { ClusterView, TaskView, WorkerView } from './views.ts';

/**
 * A rule takes part in the decisions of the kernel beside the one policy of each slot; there may be any number of rules,
 * of several extensions. It has at least one of `filter`, `score`, `holds` and `mayMove`, and answers as policies do: at
 * once, without side effects, and the same for the same state. It has no memory. When a rule throws or gives an unusable
 * answer, that decision is made without it, and the error is logged and counted (`ERR_POLICY`).
 */
export interface Rule {
  /**
   * Optional: true when the rule has anything to say of the task; the other members are only asked then. Asked often, so
   * cheap; depends only on what was submitted: key, annotations, restrictions. Default: every task.
   */
  concerns?(task: TaskView): boolean;
  /**
   * Optional veto: true when the task may run on the worker; `{ refuse }` is false with a reason for `why`. A task that a
   * filter concerns is placed as one with restrictions on workers: it is never queued as root-ish. One that is refused
   * everywhere waits in `no-worker`.
   */
  filter?(
    task: TaskView,
    worker: WorkerView,
    cluster: ClusterView,
  ): boolean | { readonly refuse: string };
  /**
   * Optional: lower is better, in any unit; must be finite. The scores of all workers that may run the task are brought to
   * 0..1 and multiplied by the weight of the rule; the lowest sum wins.
   */
  score?(task: TaskView, worker: WorkerView, cluster: ClusterView): number;
  /**
   * Optional: true when the task waits in the scheduler, though a worker could take it; `{ hold }` is true with a reason for
   * `why`. Asked when it is ready, when it leaves a queue, and in turn with others that wait after each sign of life of a
   * worker.
   */
  holds?(task: TaskView, cluster: ClusterView): boolean | { readonly hold: string };
  /** Optional: false when work stealing must not move the task from the victim to the thief. */
  mayMove?(task: TaskView, victim: WorkerView, thief: WorkerView, cluster: ClusterView): boolean;
}

/** The parts that an extension can play in decisions: the policy of a slot, or a rule. */
export interface PolicyRoles extends PolicySlots {
  rules: Rule;
}

/** Names of the slots, and `rules`. */
export type RoleName = keyof PolicyRoles;

/** A rule as a configuration names it. */
export interface RuleEntry extends UseEntry {
  /** Of its scores, beside the 1 of the policy of the slot. */
  readonly weight: number;
}

/** A rule that a config file can name. */
export interface RuleDefinition<Options = never> {
  readonly kind: 'rule';
  readonly name: string;
  readonly apiVersion: ApiVersion;
  /** JSON schema of the options. */
  readonly optionsSchema?: object;
  create(options: Options, context?: PolicyContext): Rule;
}

/**
 * Declares a rule; types its options.
 * @throws YardmasterError `ERR_PLUGIN_LOAD` when the definition is missing or empty
 */
export function defineRule<const Schema extends object = NoOptions, Given extends Rule = Rule>(
  definition: Pick<RuleDefinition, 'name' | 'apiVersion'> & {
    readonly optionsSchema?: Schema;
    readonly create: (
      options: OptionsOf<Schema>,
      context: PolicyContext,
    ) => Given & OnlyMembers<Given, 'name' | keyof Rule>;
  },
): RuleDefinition<OptionsOf<Schema>> {
  checkDefinition('defineRule', definition, '{ name, apiVersion: 1, create }');
  const create = (options: OptionsOf<Schema>, context = WITHOUT_LOG) =>
    definition.create(options, context);
  return { kind: 'rule', ...definition, create };
}
