/** Runs workloads on clusters in virtual time, and compares policies on them. */
export { Draw } from './random.ts';
export type {
  DelayFault,
  Fault,
  JoinFault,
  KillFault,
  PauseFault,
  StraggleFault,
} from './simulated-cluster.ts';
export type {
  DurationModel,
  Evaluate,
  MakeKernel,
  NetworkModel,
  Outcome,
  SimulationOptions,
  WorkerModel,
} from './options.ts';
export type { RunOptions, SimulationReport, SubmitOptions } from './simulated-cluster.ts';
export type { SimulatedWorkload } from '../workloads/index.ts';
export { simulate, Simulation } from './simulation.ts';
export { loadWorkload, loadWorkloads, recordedWorkload } from './load-workload.ts';
export {
  type ComparedInstance,
  type ComparedRun,
  type CompareOptions,
  type Comparison,
  comparePolicies,
} from './lab/compare.ts';
export type { Setting } from './lab/settings.ts';
export { type FigureName, FIGURES } from './lab/runs.ts';
export { BUILTIN_POLICIES } from '../../core/api/index.ts';
export { policyVariant, readVariant, type PolicyVariant } from './lab/variants.ts';
export type { Instance, InstanceLimits } from './lab/worst-case.ts';
export { type WorstCase, worstCase, type WorstCaseOptions } from './lab/worst-case.ts';
export { calibrate, type Calibration, type FittedModels } from './lab/calibrate.ts';
