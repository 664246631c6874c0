import { Balancer } from '../../../plugins/work-stealing/round.ts';
import { SchedulerEnv, type WorkerSpec } from '../../kit/env.ts';
import { nameOf } from '../../kit/in-short.ts';
import type { OwnPolicies } from '../../kit/ports.ts';
import type {
  PolicyInCharge,
  Stealing,
  StealProposal,
  ToWorkerMessage,
} from '../../../core/api/index.ts';
import { graphTasks, type TerseGraph } from '../../kit/graph.ts';

/** Tasks go to the workers that they prefer: none is held back. */
const UNHELD = { queuing: { workerSaturation: Infinity } };

export interface StealOptions extends Pick<OwnPolicies, 'rules'> {
  /** Default: Dask's rules. */
  readonly policy?: Stealing;
  /** Called when the policy fails. Default: that is an error. */
  readonly failed?: (what: string) => void;
  readonly spared?: readonly string[];
  readonly durationsS?: Readonly<Record<string, number>>;
}

/** A policy that is in charge and must not fail. */
export function inCharge(policy: Stealing): PolicyInCharge<'stealing'> {
  return {
    name: 'test',
    policy,
    failed: (what, cause) => {
      throw new Error(`the policy ${what}`, { cause });
    },
    answered: () => undefined,
  };
}

/** A real kernel in validate mode with a balancer; requests are kept until a test answers them. */
export class StealEnv extends SchedulerEnv {
  readonly balancer: Balancer;
  /** Proposals of each call, that is of each slice with any. */
  readonly enacted: (readonly StealProposal[])[] = [];

  constructor({ policy = {}, rules = [], ...options }: StealOptions = {}) {
    const { failed, spared = [], durationsS = {} } = options;
    super({
      ...UNHELD,
      policies: { rules },
      kernel: {
        bandwidth: 1e8,
        defaultTaskDurationsS: new Map(Object.entries(durationsS)),
        transitionCounterMax: Infinity,
      },
    });
    this.balancer = new Balancer({
      cluster: () => this.cluster,
      policy: () => ({ ...inCharge(policy), ...(failed && { failed }) }),
      spared: new Set(spared),
      enact: (proposals, victims) => {
        this.enacted.push(proposals);
        this.send({ op: 'steal-tasks', proposals, victims });
      },
    });
    this.client();
  }

  /**
   * Workers in this order, each with tasks that prefer it: `place({ w1: numbered('x', 4), w2: {}
   * })`. A task's own restriction is kept.
   */
  place(tasks: Readonly<Record<string, TerseGraph>>, spec: WorkerSpec = {}): this {
    const names = Object.keys(tasks);
    for (const name of names) this.addWorker(name, spec);
    for (const name of names) this.load(name, tasks[name] ?? {});
    return this;
  }

  /** These tasks go to the worker, which they prefer. */
  load(worker: string, graph: TerseGraph): void {
    const tasks = graphTasks(graph).map((task) => ({
      workers: [this.worker(worker).address],
      allowOtherWorkers: true,
      ...task,
    }));
    if (tasks.length === 0) return;
    const keys = tasks.map(({ key }) => key);
    this.send({ op: 'update-graph', client: 'c', tasks, keys });
  }

  /** The kernel judges a worker when something changes there; this makes it judge all of them. */
  judgeAnew(): void {
    for (const { name } of [...this.cluster.workersByRank]) {
      this.setStatus(name, 'paused');
      this.setStatus(name, 'running');
    }
  }

  /** One round. What was asked for, in order: `x-3 w1 -> w2`. */
  balance(): string[] {
    this.enacted.length = 0;
    this.balancer.runOnce();
    return this.enacted
      .flat()
      .map(({ key, victim, thief }) => `${key} ${nameOf(victim)} -> ${nameOf(thief)}`);
  }

  /** Workers answer: what was asked for has not begun. */
  giveUp(): void {
    for (const worker of [...this.cluster.workersByRank]) {
      for (const message of this.takeWorkerMessages(worker.name)) this.answer(worker.name, message);
    }
  }

  /** Rounds and answers until nothing is asked for any more; returns how many tasks were moved. */
  settle(roundsMax = 100): number {
    let moved = 0;
    for (let round = 0; round < roundsMax; round++) {
      const asked = this.balance().length;
      if (asked === 0) return moved;
      moved += asked;
      this.giveUp();
    }
    throw new Error(`still stealing after ${roundsMax} rounds`);
  }

  /** Tasks on each worker. */
  get counts(): Record<string, number> {
    return Object.fromEntries(
      this.cluster.workersByRank.map(({ name, processing }) => [name, processing.size]),
    );
  }

  private answer(worker: string, message: ToWorkerMessage): void {
    if (message.op !== 'steal-request') return;
    const { keys, runIds } = message;
    this.send({
      op: 'steal-response',
      worker: this.worker(worker).address,
      keys,
      runIds,
      states: keys.map(() => 'ready'),
    });
  }
}
