import { YardmasterError } from '../api/errors.ts';
import type { PolicySlots, SlotName } from '../api/policies.ts';
import { isMisspelt, methodNamesOf, simplify } from './hook-names.ts';

/** Keys of every member of a union. */
type NamesOf<T> = T extends unknown ? keyof T : never;

const MEMORY = { snapshot: true, restore: true } as const;

/** Every method and flag that a policy can have, by slot. A new one has to be listed to compile. */
const KNOWN: {
  readonly [Slot in SlotName]: Readonly<Record<NamesOf<PolicySlots[Slot]>, true>>;
} = {
  workerSelection: {
    ...{ reach: true, placesRootish: true, prepare: true, admits: true },
    ...{ score: true, select: true, pickFromPool: true, ...MEMORY },
  },
  queuing: {
    ...{ holdsBack: true, leavesPlacement: true, prepare: true, isRootish: true, slotLimit: true },
    ...{ selectRootish: true, nextQueued: true, priorityChanged: true, ...MEMORY },
  },
  ordering: { order: true, ...MEMORY },
  fairness: { isPerTask: true, generations: true, taskOver: true, ...MEMORY },
  stealing: {
    ...{ begin: true, mayTake: true, victims: true, levelOf: true, order: true, pays: true },
    mayPay: true,
  },
};

/** One object may fill several slots. */
const ANYWHERE: ReadonlySet<string> = new Set([
  'name',
  ...Object.values(KNOWN).flatMap(Object.keys),
]);

/**
 * Refuses what would silently never be asked: misspelt methods and flags, and in a plain object methods
 * that no slot has. A class may have further methods; names that begin with `_` are free.
 *
 * @throws YardmasterError `ERR_SLOT` with the nearest name
 */
export function checkPolicyNames(slot: SlotName, policy: object, source: string): void {
  const known = Object.keys(KNOWN[slot]);
  const prototype: unknown = Object.getPrototypeOf(policy);
  const isPlain = prototype === Object.prototype || prototype === null;
  const methods = methodNamesOf(policy);
  for (const name of new Set([...methods, ...Object.keys(policy)])) {
    if (ANYWHERE.has(name) || name.startsWith('_')) continue;
    const simple = simplify(name);
    const meant = known.find((each) => isMisspelt(simple, simplify(each)));
    if (meant === undefined && !(isPlain && methods.includes(name))) continue;
    const advice =
      meant === undefined
        ? `; there are ${known.join(', ')}; a method of its own begins with _`
        : `; did you mean "${meant}"? A name of its own begins with _, or is #private in a class`;
    throw new YardmasterError(
      'ERR_SLOT',
      `${source} cannot fill the slot ${slot}: it has "${name}", which nothing asks for${advice}`,
      { slot, name, known },
    );
  }
}
