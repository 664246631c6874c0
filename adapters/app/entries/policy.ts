/**
 * `yardmaster/policy`: for authors of policies: those that fill a slot, and those of the Active Memory
 * Manager. Guide: `docs/policies.md`.
 *
 * @module yardmaster/policy
 */
export * from '../../../core/api/policies.ts';
export * from '../../../core/api/amm.ts';
export type { AmmPolicyInfo, AmmStatus } from '../../../core/api/amm-manager.ts';
export type {
  ClusterView,
  FewMembers,
  GroupView,
  Members,
  PrefixView,
  TaskView,
  WorkerView,
} from '../../../core/api/views.ts';
export type { GraphTask } from '../../../core/messages/stimulus.ts';
export type { MemoryMeasure } from '../../../core/state/worker.ts';
export type { Steps } from '../../../core/util/steps.ts';
export type { SchedulerPolicies } from '../../../core/scheduler-host/policy-admin.ts';
