import { YardmasterError } from '../api/errors.ts';
import type { ShadowReport, Why } from '../api/insight.ts';
import type { CommandHandler, UseEntry } from '../api/plugin.ts';
import { type PolicySlots, SLOT_NAMES, type SlotName } from '../api/policies.ts';
import { hint } from '../config/errors.ts';
import { isPlainObject } from '../config/prepare.ts';
import type { Insight } from '../kernel/insight/insight.ts';
import type { Named } from '../kernel/ports.ts';

type Options = Readonly<Record<string, unknown>>;

/** What the desk needs from the scheduler around it. */
export interface PolicyDeskHost {
  readonly insight: Insight;
  /** What fills each slot now. */
  policyNames(): Readonly<Record<SlotName, string>>;
  /** Names that a client may give: built-in policies. */
  readonly builtinNames: readonly string[];
  loadPolicy(
    slot: SlotName,
    policy: string | object,
    options?: Options,
  ): Promise<Named<PolicySlots[SlotName]>>;
  replacePolicy(slot: SlotName, policy: string | object, options?: Options): Promise<void>;
  /** What the configuration puts into a slot, or what fills it by default. */
  configured(slot: SlotName): UseEntry;
  /** The plugin that fills a slot, if one does. */
  pluginIn(slot: SlotName): string | undefined;
  /** Runs between two stimuli. */
  between(change: () => void): void;
}

/** The policies of a running scheduler: who decides, who would decide otherwise, and why. */
export interface SchedulerPolicies {
  /** Names of the policies in charge. */
  readonly current: Readonly<Record<SlotName, string>>;
  /** See `Scheduler.replacePolicy`. */
  replace(slot: SlotName, policy: string | object, options?: Options): Promise<void>;
  /**
   * Puts the configured policy back in charge of a slot, made anew; without one, the default policy.
   * @throws YardmasterError `ERR_SLOT` when a plugin fills the slot
   */
  restore(slot: SlotName): Promise<void>;
  /**
   * Asks a policy whatever the one in charge of the slot is asked; it decides nothing. One per slot; a
   * new one takes the place of the old.
   * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`, `ERR_SLOT`
   */
  startShadow(slot: SlotName, policy: string | object, options?: Options): Promise<void>;
  /** What the shadow has found so far; undefined when there is none. */
  shadow(slot: SlotName): ShadowReport | undefined;
  /** Ends it. Returns what it found. */
  stopShadow(slot: SlotName): ShadowReport | undefined;
  /** Keeps so many of the newest decisions with their candidates, for `why`; 0 keeps none (default). */
  recordDecisions(lengthMax: number): void;
  /** Why a task is where it is, and how it got there. */
  why(key: string): Why;
}

/** Answers the calls, from code and from clients. */
export class PolicyDesk implements SchedulerPolicies {
  constructor(private readonly host: PolicyDeskHost) {}

  get current(): Readonly<Record<SlotName, string>> {
    return this.host.policyNames();
  }

  replace(slot: SlotName, policy: string | object, options?: Options): Promise<void> {
    return this.host.replacePolicy(slot, policy, options);
  }

  async restore(slot: SlotName): Promise<void> {
    const plugin = this.host.pluginIn(slot);
    if (plugin !== undefined) {
      throw new YardmasterError(
        'ERR_SLOT',
        `the plugin "${plugin}" fills the slot ${slot}, not the configuration; add the plugin anew to restore its policy`,
        { slot, plugin },
      );
    }
    const { use, options } = this.host.configured(slot);
    await this.host.replacePolicy(slot, use as string | object, options);
  }

  async startShadow(slot: SlotName, policy: string | object, options?: Options): Promise<void> {
    checkSlot(slot);
    const named = await this.host.loadPolicy(slot, policy, options);
    this.host.between(() => {
      this.host.insight.startShadow(slot, named);
    });
  }

  shadow(slot: SlotName): ShadowReport | undefined {
    checkSlot(slot);
    return this.host.insight.shadowReport(slot);
  }

  stopShadow(slot: SlotName): ShadowReport | undefined {
    const report = this.shadow(slot);
    this.host.between(() => {
      this.host.insight.stopShadow(slot);
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
    this.host.between(() => {
      this.host.insight.recordDecisions(lengthMax);
    });
  }

  why(key: string): Why {
    return this.host.insight.why(key);
  }

  /** The calls that clients make, by name. */
  get commands(): (readonly [name: string, handler: CommandHandler])[] {
    return [
      ['policies', () => this.current],
      ['replace-policy', (parameters) => this.replaceFor(request(parameters))],
      ['restore-policy', (parameters) => this.restore(request(parameters).slot)],
      ['start-shadow', (parameters) => this.startShadowFor(request(parameters))],
      ['shadow', (parameters) => this.shadow(request(parameters).slot)],
      ['stop-shadow', (parameters) => this.stopShadow(request(parameters).slot)],
      ['record-decisions', (parameters) => this.recordFor(parameters)],
      ['why', (parameters) => this.why(keyIn(parameters))],
    ];
  }

  private replaceFor({ slot, use, options }: PolicyRequest): Promise<void> {
    return this.replace(slot, this.builtinOnly(slot, use), options);
  }

  private startShadowFor({ slot, use, options }: PolicyRequest): Promise<void> {
    return this.startShadow(slot, this.builtinOnly(slot, use), options);
  }

  private recordFor(parameters: unknown): void {
    const { keep } = (isPlainObject(parameters) ? parameters : {}) as { keep?: unknown };
    this.recordDecisions(keep as number);
  }

  /** A client must not make the scheduler load files of its choice. */
  private builtinOnly(slot: SlotName, use: unknown): string {
    const { builtinNames } = this.host;
    const name = String(use);
    const isBuiltin = builtinNames.includes(name) || builtinNames.includes(`${slot}/${name}`);
    if (typeof use === 'string' && isBuiltin) return use;
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `a client can put built-in policies into the slot ${slot}, and "${name}" is none${hint(name, builtinNames)}; ` +
        'name other ones in the configuration, or call scheduler.replacePolicy where the scheduler runs',
      { slot, use: name },
    );
  }
}

interface PolicyRequest {
  readonly slot: SlotName;
  readonly use?: unknown;
  readonly options?: Options;
}

function request(parameters: unknown): PolicyRequest {
  const { slot, use, options } = (isPlainObject(parameters) ? parameters : {}) as {
    readonly slot?: unknown;
    readonly use?: unknown;
    readonly options?: unknown;
  };
  checkSlot(slot);
  return { slot, use, ...(isPlainObject(options) ? { options } : {}) };
}

function checkSlot(slot: unknown): asserts slot is SlotName {
  if (SLOT_NAMES.includes(slot as SlotName)) return;
  const name = String(slot);
  throw new YardmasterError(
    'ERR_SLOT',
    `there is no policy slot "${name}"${hint(name, SLOT_NAMES)}; there are ${SLOT_NAMES.join(', ')}`,
    { slot: name },
  );
}

function keyIn(parameters: unknown): string {
  const { key } = (isPlainObject(parameters) ? parameters : {}) as { key?: unknown };
  if (typeof key === 'string') return key;
  throw new YardmasterError('ERR_PROTOCOL', 'the command "why" takes { key } with a string', {
    command: 'why',
    field: 'key',
  });
}
