import {
  type ClusterView,
  definePolicy,
  type Fairness,
  type OptionsOf,
  type Submission,
  type TaskView,
} from '../../core/api/index.ts';

/** Tasks that take no time at all still take a turn. */
const COST_MIN_S = 0.001;
/** The suffix that a connecting client adds to its name so that the name is unique. */
const UNIQUE_PART = /-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** Accounts that may be there without a client before they are looked through. */
const SPARE_ACCOUNTS_MAX = 100;

const positive = (description: string) =>
  ({
    description,
    type: 'number',
    exclusiveMinimum: 0,
  }) as const;

const optionsSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    weights: {
      description:
        'Share of each client by its name or its whole key, or of each tenant, relative to the others.',
      type: 'object',
      additionalProperties: positive('Weight of this one.'),
      default: {},
    },
    defaultWeight: { ...positive('Weight of those that are not listed.'), default: 1 },
    by: {
      description:
        'Who has a share: client, each connection; name, all clients of one name together; tenant, whom calls name, and the others by the name of their client.',
      enum: ['client', 'name', 'tenant'],
      default: 'client',
    },
    cost: {
      description: 'What is shared: seconds, expected duration of the tasks; tasks, their number.',
      enum: ['seconds', 'tasks'],
      default: 'seconds',
    },
    ageing: {
      description:
        'What a second of waiting is worth, in units of work per weight; 0: nothing but weights counts.',
      type: 'number',
      minimum: 0,
      default: 0.01,
    },
  },
} as const;

/**
 * Clients, or the tenants that calls name, share the cluster in proportion to their weights, however much each of them
 * submits: one that submits ten tasks does not wait for ten thousand of another.
 *
 * Start-time fair queuing. The virtual time of a client (or tenant) is the work that it has had, divided by its
 * weight. The tasks of a submission are dated from the present, or from the end of the client's
 * other work; each date follows the one before by the task's cost divided by the weight. Tasks with
 * earlier dates run first. All dates are set at submission, so workers run tasks in the same order.
 * A client cannot save up credit: one that was idle begins at the present.
 *
 * Ageing lets an old task overtake newer ones: it runs before tasks whose submission is later by so
 * much that the difference, times `ageing`, exceeds the distance of its own date from the present.
 */
export const weightedFairShare = definePolicy('fairness', {
  name: 'weighted-fair-share',
  apiVersion: 1,
  optionsSchema,
  create: (options) => new FairShare(options),
});

/** The served and the requested work of a client, in virtual time. */
interface Account {
  readonly weight: number;
  /** The virtual time up to which its work has been done. */
  done: number;
  /** The virtual time at which its work ends; the next submission begins there. */
  end: number;
}

/** The memory of {@link FairShare}. */
interface ShareMemory {
  /** Those with a name come first, in the order of the names. */
  readonly accounts: readonly (readonly [weight: number, done: number, end: number])[];
  readonly names: readonly string[];
  /** By id of the task: position of its account, or -1. */
  readonly owners: readonly number[];
  readonly costs: readonly number[];
  readonly present: number;
  readonly startMs: number;
}

class FairShare implements Fairness {
  readonly isPerTask = true;
  private readonly accounts = new Map<string, Account>();
  /** By id of the task: the account that it belongs to, until it is over. */
  private readonly owners: (Account | undefined)[] = [];
  /** By id of the task: its cost divided by the weight. */
  private readonly costs: number[] = [];
  /** Date of the work that is being done: what the client had had before that was served last. */
  private present = -Infinity;
  private startMs = 0;

  constructor(private readonly options: OptionsOf<typeof optionsSchema>) {}

  generations(submission: Submission, cluster: ClusterView): number | number[] {
    const { client, tasks, parent, nowMs, generation } = submission;
    if (this.present === -Infinity) {
      // Behind what was submitted while another policy was in place.
      this.present = Math.max(0, generation);
      this.startMs = nowMs;
    }
    if (isIdle(cluster)) this.settle();
    this.forgetGone(cluster);
    const aged = (this.options.ageing * (nowMs - this.startMs)) / 1000;
    // The tasks that a task submits get the date of that task, before the other work of its client.
    let next = parent?.priority?.[1];
    // A query of the position that a submission would get names no tasks.
    if (tasks.length === 0) return next ?? this.accountOf(this.ownerOf(client, parent)).end + aged;
    return tasks.map((task) => {
      const account = this.accountOf(this.ownerOf(client, task, parent));
      const date = next ?? account.end + aged;
      const cost = this.costOf(task) / account.weight;
      if (next !== undefined) next += cost;
      account.end += cost;
      this.own(task, account, cost);
      return date;
    });
  }

  taskOver({ id }: TaskView, isServed: boolean): void {
    const account = this.owners[id];
    if (account === undefined) return;
    this.owners[id] = undefined;
    const cost = this.costs[id] ?? 0;
    if (isServed) {
      // The present is where a task began that was served, not where the next one of its client is.
      this.present = Math.max(this.present, account.done);
      account.done = Math.min(account.end, account.done + cost);
    } else {
      // What is cancelled is not paid for.
      account.end = Math.max(account.done, account.end - cost);
    }
  }

  snapshot(): ShareMemory {
    const { accounts, owners, costs, present, startMs } = this;
    // A client that is gone may still have tasks.
    const all = [...new Set([...accounts.values(), ...owners])].filter((one) => one !== undefined);
    const places = new Map<Account | undefined, number>(all.map((one, place) => [one, place]));
    return {
      accounts: all.map(({ weight, done, end }) => [weight, done, end]),
      names: [...accounts.keys()],
      owners: owners.map((owner) => places.get(owner) ?? -1),
      costs,
      present,
      startMs,
    };
  }

  restore(memory: unknown): void {
    const { accounts, names, owners, costs, present, startMs } = memory as ShareMemory;
    const all = accounts.map(([weight, done, end]): Account => ({ weight, done, end }));
    names.forEach((name, place) => this.accounts.set(name, all[place] as Account));
    for (const place of owners) this.owners.push(all[place]);
    for (const cost of costs) this.costs.push(cost);
    this.present = present;
    this.startMs = startMs;
  }

  /** Everything was done: all begin anew, even with each other. */
  private settle(): void {
    for (const { end } of this.accounts.values()) this.present = Math.max(this.present, end);
  }

  private own({ id }: TaskView, account: Account, cost: number): void {
    // Without gaps, so that the arrays stay dense.
    while (this.owners.length <= id) {
      this.owners.push(undefined);
      this.costs.push(0);
    }
    this.owners[id] = account;
    this.costs[id] = cost;
  }

  private costOf(task: TaskView): number {
    if (this.options.cost === 'tasks') return 1;
    return Math.max(COST_MIN_S, task.prefix.durationEstimateS);
  }

  /** @param tasks - what is submitted, and what submits it: the first that has a tenant counts */
  private ownerOf(client: string, ...tasks: readonly (TaskView | undefined)[]): string {
    const { by } = this.options;
    if (by === 'client') return client;
    const tenants = by === 'tenant' ? tasks.map((task) => task?.annotations?.['tenant']) : [];
    const tenant = tenants.find((found) => typeof found === 'string');
    return tenant ?? client.replace(UNIQUE_PART, '');
  }

  /** An owner that was idle begins at the present. */
  private accountOf(owner: string): Account {
    const { weights, defaultWeight } = this.options;
    let account = this.accounts.get(owner);
    if (account === undefined) {
      const weight =
        own(weights, owner) ?? own(weights, owner.replace(UNIQUE_PART, '')) ?? defaultWeight;
      account = { weight, done: this.present, end: this.present };
      this.accounts.set(owner, account);
    } else if (account.end < this.present) account.end = account.done = this.present;
    return account;
  }

  /**
   * Forgets accounts of clients that are gone and whose work lies before the present: such an
   * account can be created anew.
   */
  private forgetGone({ clients }: ClusterView): void {
    if (this.accounts.size <= clients.size + SPARE_ACCOUNTS_MAX) return;
    for (const [key, { end }] of this.accounts) {
      if (end <= this.present) this.accounts.delete(key);
    }
  }
}

function isIdle({ queued, unrunnable, totalOccupancyS }: ClusterView): boolean {
  return queued.size === 0 && unrunnable.size === 0 && totalOccupancyS === 0;
}

function own(weights: Readonly<Record<string, number>>, key: string): number | undefined {
  return Object.hasOwn(weights, key) ? weights[key] : undefined;
}
