/**
 * `yardmaster/policy`: for authors of policies: those that fill a slot, and those of the Active Memory
 * Manager. Guide: `docs/policies.md`.
 *
 * @module yardmaster/policy
 */
export {
  definePolicy,
  type Fairness,
  type GraphLinks,
  type Ordering,
  type PolicyDefinition,
  type PolicySlots,
  type Queuing,
  type Reach,
  type ScoringSelection,
  type SelectingSelection,
  type SlotName,
  type Stealing,
  type Submission,
  type Theft,
  type WorkerLoad,
  type WorkerPool,
  type WorkerSelection,
} from '../../../core/api/policies.ts';
export { defineRule, type Rule, type RuleDefinition } from '../../../core/api/rules.ts';
export {
  ActiveMemoryManagerPolicy,
  type AmmRound,
  type AmmView,
  defineAmmPolicy,
  drop,
  replicate,
  type Retirement,
  type Suggestion,
  type SuggestionGenerator,
} from '../../../core/api/amm.ts';
export type {
  ClusterView,
  GroupView,
  PrefixView,
  TaskView,
  WorkerView,
} from '../../../core/api/views.ts';
export type { GraphTask } from '../../../core/messages/stimulus.ts';
