import { YardmasterError } from '../api/errors.ts';
import type { ShadowReport, Why } from '../api/insight.ts';
import { type Builtins } from '../api/plugin.ts';
import { KERNEL_SLOT_NAMES, type KernelSlotName, type SlotName } from '../api/policies.ts';
import { DEFAULT_POLICIES } from '../config/schema.ts';
import type { Config } from '../config/types.ts';
import { Insight } from '../kernel/insight.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { BUILTINS, CONFIG } from '../host/tokens.ts';
import { checkSlot, PolicySlotTable } from '../plugin-host/policy-slots.ts';
import { hint } from '../shared/words.ts';
import { builtin, type BuiltinCommand, type Given } from './commands.ts';
import { ConfiguredExtensions, Extensions } from './extensions.ts';
import { StimulusQueue } from './stimulus-queue.ts';

type Options = Readonly<Record<string, unknown>>;

/** The policies of a running scheduler: who decides, who would decide otherwise, and why. */
export interface SchedulerPolicies {
  /** Names of the policies in charge. */
  readonly current: Readonly<Record<SlotName, string>>;
  /** See `Scheduler.replacePolicy`. */
  replace(slot: SlotName, policy: string | object, options?: Options): Promise<void>;
  /**
   * Puts the configured policy back in charge of a slot, made anew; without one, the default policy. When a
   * plugin of the configuration fills the slot, its policy is in charge already and stays.
   * @throws YardmasterError `ERR_SLOT` when a plugin that was added since fills the slot
   */
  restore(slot: SlotName): Promise<void>;
  /**
   * Asks a policy whatever the one in charge of the slot is asked; it decides nothing. One per slot; a
   * new one takes the place of the old. The slot `stealing` has no shadows.
   * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`, `ERR_SLOT`
   */
  startShadow(slot: SlotName, policy: string | object, options?: Options): Promise<void>;
  /**
   * Puts the policy that is in the shadow of a slot in charge of it, made anew with the same options, and
   * ends the shadow. Returns what the shadow had found before.
   * @throws YardmasterError `ERR_SLOT` when the slot has no shadow
   */
  promote(slot: SlotName): Promise<ShadowReport>;
  /** The report of the shadow so far; undefined when there is none. */
  shadow(slot: SlotName): ShadowReport | undefined;
  /** Ends it. Returns what it found. */
  stopShadow(slot: SlotName): ShadowReport | undefined;
  /**
   * Keeps this many of the newest decisions with their candidates, for `why`; 0 keeps none
   * (default).
   */
  recordDecisions(lengthMax: number): void;
  /** Explains the present state of a task, and how it got there. */
  why(key: string): Why;
}

/** Answers the calls, from code and from clients. */
@collaborator
export class PolicyAdmin implements SchedulerPolicies {
  /** The sources of the shadows, so that they can be promoted. */
  private readonly shadowed = new Map<KernelSlotName, PolicySource>();
  private readonly config: Config['scheduler'];
  /** Names that a client may give: built-in policies. */
  private readonly builtinNames: readonly string[];

  constructor(
    private readonly insight: Insight,
    private readonly slots: PolicySlotTable,
    private readonly extensions: Extensions,
    @inject(ConfiguredExtensions) { shadows }: ConfiguredExtensions,
    private readonly queue: StimulusQueue,
    @inject(CONFIG) { scheduler }: Config,
    @inject(BUILTINS) builtins: Builtins,
  ) {
    this.config = scheduler;
    this.builtinNames = Object.keys(builtins);
    insight.recordDecisions(scheduler.decisionLogLength);
    for (const [slot, shadow] of shadows) insight.startShadow(slot, shadow);
    for (const slot of KERNEL_SLOT_NAMES) {
      const source = scheduler.shadows[slot];
      if (source !== undefined) this.shadowed.set(slot, source);
    }
  }

  get current(): Readonly<Record<SlotName, string>> {
    return this.slots.names;
  }

  replace(slot: SlotName, policy: string | object, options?: Options): Promise<void> {
    return this.extensions.replacePolicy(slot, policy, options);
  }

  async restore(slot: SlotName): Promise<void> {
    checkSlot(slot);
    const plugin = this.extensions.pluginIn(slot);
    if (plugin?.isConfigured === true) return;
    if (plugin !== undefined) {
      throw new YardmasterError(
        'ERR_SLOT',
        `the plugin "${plugin.name}", which the configuration does not list, fills the slot ${slot}; remove it (scheduler.removePlugin), and the configured policy is in charge again`,
        { slot, plugin: plugin.name },
      );
    }
    const { use, options } = this.config.policies[slot] ?? { use: DEFAULT_POLICIES[slot] };
    await this.extensions.replacePolicy(slot, use as string | object, options);
  }

  async startShadow(slot: SlotName, policy: string | object, options?: Options): Promise<void> {
    checkCanShadow(slot);
    const named = await this.extensions.loadPolicy(slot, policy, options);
    this.queue.between(() => {
      this.insight.startShadow(slot, named);
    });
    this.shadowed.set(slot, { use: policy, options });
  }

  async promote(slot: SlotName): Promise<ShadowReport> {
    checkCanShadow(slot);
    const report = this.shadow(slot);
    const source = this.shadowed.get(slot);
    if (report === undefined || source === undefined) {
      throw new YardmasterError(
        'ERR_SLOT',
        `the slot ${slot} has no shadow to promote; start one with startShadow, or configure scheduler.shadows.${slot}`,
        { slot },
      );
    }
    await this.extensions.replacePolicy(slot, source.use as string | object, source.options);
    this.stopShadow(slot);
    return report;
  }

  shadow(slot: SlotName): ShadowReport | undefined {
    checkSlot(slot);
    return canShadow(slot) ? this.insight.shadowReport(slot) : undefined;
  }

  stopShadow(slot: SlotName): ShadowReport | undefined {
    const report = this.shadow(slot);
    if (!canShadow(slot)) return undefined;
    this.shadowed.delete(slot);
    this.queue.between(() => {
      this.insight.stopShadow(slot);
    });
    return report;
  }

  recordDecisions(lengthMax: number): void {
    if (!Number.isInteger(lengthMax) || lengthMax < 0) {
      throw new YardmasterError(
        'ERR_CONFIG',
        `decisions cannot be recorded for the newest ${String(lengthMax)}; give a whole number, 0 for none`,
        { lengthMax },
      );
    }
    this.queue.between(() => {
      this.insight.recordDecisions(lengthMax);
    });
  }

  why(key: string): Why {
    return this.insight.why(key);
  }

  /** The calls that clients make. */
  get commands(): readonly BuiltinCommand[] {
    return [
      builtin('policies', () => this.current),
      builtin('replace-policy', ({ slot, ...asked }) => {
        const { use, options } = this.sourceFor(known(slot), asked);
        return this.replace(known(slot), use as string | object, options);
      }),
      builtin('restore-policy', ({ slot }) => this.restore(known(slot))),
      builtin('promote-shadow', ({ slot }) => this.promote(known(slot))),
      builtin('start-shadow', ({ slot, ...asked }) => {
        const { use, options } = this.sourceFor(known(slot), asked);
        return this.startShadow(known(slot), use as string | object, options);
      }),
      builtin('shadow', ({ slot }) => this.shadow(known(slot))),
      builtin('stop-shadow', ({ slot }) => this.stopShadow(known(slot))),
      builtin('record-decisions', ({ keep }) => this.recordDecisions(keep)),
      builtin('why', ({ key }) => this.why(key)),
    ];
  }

  /**
   * Resolves a policy that a client may name: one that the operator offers for the slot, with the client's options over
   * the configured ones, or a built-in one. It must not make the scheduler load files of its choice.
   */
  private sourceFor(
    slot: SlotName,
    { use: name, options }: Pick<Given<'replace-policy'>, 'use' | 'options'>,
  ): PolicySource {
    const { builtinNames } = this;
    const mine: Readonly<Record<string, PolicySource>> = this.config.clientPolicies[slot] ?? {};
    if (Object.hasOwn(mine, name)) {
      const source = mine[name] as PolicySource;
      return options === undefined
        ? source
        : { ...source, options: { ...source.options, ...options } };
    }
    const isBuiltin = builtinNames.includes(name) || builtinNames.includes(`${slot}/${name}`);
    if (isBuiltin) return { use: name, options };
    const names = Object.keys(mine);
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `a client can put built-in policies into the slot ${slot}, and those that scheduler.clientPolicies.${slot} offers ` +
        `(${names.length === 0 ? 'none' : names.join(', ')}), and "${name}" is none of them` +
        `${hint(name, [...names, ...builtinNames])}; offer it there, or call scheduler.replacePolicy where the scheduler runs`,
      { slot, use: name },
    );
  }
}

/** The source of a policy: a name, a path or a definition, and its options. */
interface PolicySource {
  readonly use: unknown;
  readonly options?: Options;
}

/** @throws YardmasterError `ERR_SLOT` when there is no such slot */
function known(slot: string): SlotName {
  checkSlot(slot);
  return slot;
}

function canShadow(slot: SlotName): slot is KernelSlotName {
  return KERNEL_SLOT_NAMES.includes(slot as KernelSlotName);
}

function checkCanShadow(slot: unknown): asserts slot is KernelSlotName {
  checkSlot(slot);
  if (canShadow(slot)) return;
  throw new YardmasterError(
    'ERR_SLOT',
    `the slot ${slot} has no shadows: rounds of stealing cannot be compared yet; put the policy in charge instead (replace), and see what it asks for with the command work-stealing.metrics`,
    { slot },
  );
}
