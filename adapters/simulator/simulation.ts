import { createScheduler } from '../../core/scheduler-host/create-scheduler.ts';
import { builtins } from '../app/builtin-extensions.ts';
import { configuration } from '../app/config.ts';
import { recallKnowledge } from '../app/knowledge.ts';
import type { SimulatedWorkload } from '../workloads/index.ts';
import type { SimulationOptions } from './options.ts';
import { type RunOptions, SimulatedCluster, type SimulationReport } from './simulated-cluster.ts';

/** A simulated cluster whose configuration may name files, and everything that is built in. */
export class Simulation extends SimulatedCluster {
  private constructor(options: SimulationOptions) {
    super(options, setImmediate);
  }

  /** @throws YardmasterError `ERR_CONFIG`, `ERR_PLUGIN_LOAD`, `ERR_PLUGIN_SETUP`, `ERR_SLOT` */
  static async start(options: SimulationOptions = {}): Promise<Simulation> {
    const simulation = new Simulation(options);
    const { config, overrides } = options;
    await simulation.open(async (given) => {
      const layers = overrides && { overrides };
      const scheduler = await createScheduler({
        config,
        layers,
        configuration,
        builtins,
        ...given,
      });
      recallKnowledge(scheduler, given.log);
      return scheduler;
    });
    return simulation;
  }
}

/**
 * Runs a workload on a simulated cluster.
 * @throws YardmasterError as {@link Simulation.start} and {@link Simulation.run}
 */
export async function simulate(
  workload: SimulatedWorkload,
  { maxMs, ...options }: SimulationOptions & RunOptions = {},
): Promise<SimulationReport> {
  const simulation = await Simulation.start(options);
  try {
    simulation.submit(workload);
    await simulation.run({ maxMs });
    return simulation.report();
  } finally {
    await simulation.close();
  }
}
