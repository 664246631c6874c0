/**
 * `yardmaster/simulator`: runs workloads on clusters in virtual time, with the scheduler of production and models of
 * workers, network and faults, and compares policies. It has the graphs of the literature, recorded or in any size.
 * Guides: `docs/simulator.md`, `docs/benchmarks.md`.
 *
 * @module yardmaster/simulator
 */
export {
  BUILTIN_POLICIES,
  calibrate,
  type Calibration,
  type CompareOptions,
  comparePolicies,
  type Comparison,
  type DurationModel,
  type Fault,
  type FigureName,
  FIGURES,
  loadWorkload,
  loadWorkloads,
  type NetworkModel,
  type PolicyVariant,
  policyVariant,
  readVariant,
  recordedWorkload,
  type RunOptions,
  simulate,
  type SimulatedWorkload,
  Simulation,
  type SimulationOptions,
  type SimulationReport,
  type SubmitOptions,
  type WorkerModel,
  type WorstCase,
  worstCase,
  type WorstCaseOptions,
} from '../../simulator/index.ts';
export {
  type CostedTask,
  graphWorkload,
  recorded,
  RECORDED,
  wfcommonsWorkload,
  type Workload,
  workload,
  WORKLOADS,
} from '../../workloads/index.ts';
