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
/** Accounts that may be there without an open task before they are looked through. */
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
 * earlier dates run first, on workers, too. A client cannot save up credit: one that was idle begins at the present.
 *
 * A task that has run is paid for by what it took. Where that is far from what was expected, the open tasks of its
 * client are dated anew; so are all that are open when this policy takes over from another one.
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
  /** Its tasks that are not over. */
  openCount: number;
  /** The virtual time by which its open tasks are dated too early; below 0: too late. */
  drift: number;
}

/** An open task. */
interface Dated {
  readonly account: Account;
  /** The date that the task has, with {@link aged}. */
  date: number;
  /** Divided by the weight. */
  cost: number;
  /** Of its date: for having been submitted later than others. */
  readonly aged: number;
}

/** The memory of {@link FairShare}. */
interface ShareMemory {
  /** Those with a name come first, in the order of the names. */
  readonly accounts: readonly (readonly [
    ...[weight: number, done: number, end: number],
    ...[openCount: number, drift: number],
  ])[];
  readonly names: readonly string[];
  /** By id of the task; null: it is over. */
  readonly tasks: readonly (
    readonly [account: number, date: number, cost: number, aged: number] | null
  )[];
  readonly present: number;
  readonly startMs: number;
}

/** Expectations may be wrong by this factor, and by this part of what a client has open, before it is dated anew. */
const FACTOR_MAX = 2;
const DRIFT_SHARE_MAX = 0.1;

class FairShare implements Fairness {
  readonly isPerTask = true;
  private readonly accounts = new Map<string, Account>();
  /** Accounts beyond which those that are settled are looked for. */
  private accountsMax = SPARE_ACCOUNTS_MAX;
  /** By id of the task; undefined: it is over, or of another policy. */
  private readonly tasks: (Dated | undefined)[] = [];
  private openCount = 0;
  /** Date of the work that is being done: what the client had had before that was served last. */
  private present = -Infinity;
  private startMs = 0;
  /** Accounts whose open tasks are to be dated anew. */
  private readonly stale = new Set<Account>();

  constructor(private readonly options: OptionsOf<typeof optionsSchema>) {}

  generations(submission: Submission, cluster: ClusterView): number | number[] {
    const { client, tasks, parent, nowMs } = submission;
    if (this.present === -Infinity) {
      this.present = 0;
      this.startMs = nowMs;
      this.adopt(cluster);
    }
    // Everything was done: all begin anew, even with each other.
    if (this.openCount === 0) {
      for (const { end } of this.accounts.values()) this.present = Math.max(this.present, end);
    }
    this.forgetSettled();
    const aged = this.agedAt(nowMs);
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
      this.open(task, { account, date, cost, aged });
      return date;
    });
  }

  taskOver(task: TaskView, isServed: boolean, _cluster: ClusterView, seconds?: number): void {
    const dated = this.tasks[task.id];
    if (dated === undefined) return;
    this.tasks[task.id] = undefined;
    this.openCount--;
    const { account, cost } = dated;
    account.openCount--;
    if (!isServed) {
      // What is cancelled is not paid for.
      account.end = Math.max(account.done, account.end - cost);
      return;
    }
    // The present is where a task began that was served, not where the next one of its client is.
    this.present = Math.max(this.present, account.done);
    const isTimed = seconds !== undefined && this.options.cost === 'seconds';
    const paid = isTimed ? Math.max(COST_MIN_S, seconds) / account.weight : cost;
    account.done += paid;
    account.end = Math.max(account.done, account.end + paid - cost);
    if (account.openCount === 0) {
      account.drift = 0;
      return;
    }
    account.drift += paid - cost;
    const factor = this.costOf(task) / account.weight / cost;
    const isWrong = factor > FACTOR_MAX || factor < 1 / FACTOR_MAX;
    const driftMax = DRIFT_SHARE_MAX * (account.end - account.done);
    if (isWrong || Math.abs(account.drift) > driftMax) this.stale.add(account);
  }

  /** O(tasks) where an account is dated anew, which is so after a tenth of its work at the most. */
  revise({ tasks }: ClusterView): [key: string, date: number][] | undefined {
    const { stale } = this;
    if (stale.size === 0) return undefined;
    const open = [...tasks.values()].filter(({ id }) => {
      const dated = this.tasks[id];
      return dated !== undefined && stale.has(dated.account);
    });
    for (const account of stale) {
      account.end = account.done;
      account.drift = 0;
    }
    stale.clear();
    const dateOf = ({ id }: TaskView): number => this.tasks[id]?.date ?? 0;
    return open.sort(inOrderOf(dateOf)).map((task) => {
      const dated = this.tasks[task.id] as Dated;
      const { account, aged } = dated;
      dated.date = account.end + aged;
      dated.cost = this.costOf(task) / account.weight;
      account.end += dated.cost;
      return [task.key, dated.date];
    });
  }

  snapshot(): ShareMemory {
    const { accounts, tasks, present, startMs } = this;
    // A client that is gone may still have tasks.
    const all = [...new Set([...accounts.values(), ...tasks.map((task) => task?.account)])];
    const known = all.filter((one) => one !== undefined);
    const places = new Map<Account, number>(known.map((one, place) => [one, place]));
    return {
      accounts: known.map((one) => [one.weight, one.done, one.end, one.openCount, one.drift]),
      names: [...accounts.keys()],
      tasks: tasks.map((task) =>
        task === undefined
          ? null
          : [places.get(task.account) ?? 0, task.date, task.cost, task.aged],
      ),
      present,
      startMs,
    };
  }

  restore(memory: unknown): void {
    const { accounts, names, tasks, present, startMs } = memory as ShareMemory;
    const all = accounts.map(([weight, done, end, openCount, drift]): Account => ({
      weight,
      done,
      end,
      openCount,
      drift,
    }));
    names.forEach((name, place) => this.accounts.set(name, all[place] as Account));
    for (const task of tasks) {
      if (task === null) {
        this.tasks.push(undefined);
        continue;
      }
      const [place, date, cost, aged] = task;
      this.tasks.push({ account: all[place] as Account, date, cost, aged });
    }
    this.openCount = all.reduce((sum, { openCount }) => sum + openCount, 0);
    this.present = present;
    this.startMs = startMs;
  }

  /** Takes over what another policy has dated, in its order. */
  private adopt({ tasks }: ClusterView): void {
    const owners = new Map<TaskView, string>();
    const open = [...tasks.values()].filter(
      ({ state, priority }) => OPEN.includes(state) && priority !== undefined,
    );
    // Those that nobody wants are there for their dependents, which come later.
    for (const task of open.sort(inOrderOf(({ generation }) => generation)).reverse()) {
      const [wanting] = task.whoWants.items;
      const dependent = task.dependents.find((one) => owners.has(one));
      const client = dependent === undefined ? undefined : owners.get(dependent);
      owners.set(task, this.ownerOf(wanting?.key ?? client ?? '', task));
    }
    for (const task of open.reverse()) {
      const account = this.accountOf(owners.get(task) ?? '');
      const cost = this.costOf(task) / account.weight;
      this.open(task, { account, date: account.end, cost, aged: 0 });
      account.end += cost;
      this.stale.add(account);
    }
  }

  private open({ id }: TaskView, dated: Dated): void {
    // Without gaps, so that the array stays dense.
    while (this.tasks.length <= id) this.tasks.push(undefined);
    this.tasks[id] = dated;
    this.openCount++;
    dated.account.openCount++;
  }

  private agedAt(nowMs: number): number {
    return (this.options.ageing * (nowMs - this.startMs)) / 1000;
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
      account = { weight, done: this.present, end: this.present, openCount: 0, drift: 0 };
      this.accounts.set(owner, account);
    } else if (account.end < this.present) account.end = account.done = this.present;
    return account;
  }

  /**
   * Forgets accounts without open tasks, the oldest first, when their number has doubled. Those that are ahead of the
   * present lose that: a task or two, as a rule. O(1) for each submission, on average.
   */
  private forgetSettled(): void {
    if (this.accounts.size <= this.accountsMax) return;
    for (const [key, { openCount }] of this.accounts) {
      if (openCount === 0) this.accounts.delete(key);
    }
    this.accountsMax = SPARE_ACCOUNTS_MAX + 2 * this.accounts.size;
  }
}

/** The states of tasks that are not over. */
const OPEN: readonly string[] = ['waiting', 'queued', 'no-worker', 'processing'];

function inOrderOf(dateOf: (task: TaskView) => number) {
  return (a: TaskView, b: TaskView): number =>
    dateOf(a) - dateOf(b) || a.arrival - b.arrival || a.rank - b.rank;
}

function own(weights: Readonly<Record<string, number>>, key: string): number | undefined {
  return Object.hasOwn(weights, key) ? weights[key] : undefined;
}
