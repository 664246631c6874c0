import { entryBytes } from './budget.ts';
import { refused } from './errors.ts';
import type { CoordinationScope } from './scope.ts';
import type { GivenValue, Value } from './values.ts';

/** Published values, which outlive the clients that published them. */
export class DataSets {
  private readonly dataSets = new Map<string, Value>();

  constructor(private readonly scope: CoordinationScope) {}

  /** Names in the order in which they were published. */
  get names(): readonly string[] {
    return [...this.dataSets.keys()];
  }

  /** @throws YardmasterError `ERR_COORDINATION` when the name is taken, or the space is used up */
  publish(name: string, value: Value, override: boolean): void {
    const { values, budget } = this.scope;
    const old = this.dataSets.get(name);
    if (old !== undefined && !override) {
      throw refused(
        'exists',
        `there is a data set "${name}" already; unpublish it first, or say { override: true }`,
        { name },
      );
    }
    values.store(value, ownerOf(name));
    if (old === undefined) {
      try {
        budget.charge(entryBytes(name), `the data set "${name}"`);
      } catch (error) {
        values.discard(value, ownerOf(name));
        throw error;
      }
    } else values.discard(old, ownerOf(name));
    this.dataSets.set(name, value);
  }

  /** @throws YardmasterError `ERR_COORDINATION` when no data set has this name */
  get(name: string, client: string): GivenValue {
    return this.scope.values.give(this.find(name), client);
  }

  /** @throws YardmasterError `ERR_COORDINATION` when no data set has this name */
  unpublish(name: string): void {
    const value = this.find(name);
    this.dataSets.delete(name);
    this.scope.values.discard(value, ownerOf(name));
    this.scope.budget.free(entryBytes(name));
  }

  private find(name: string): Value {
    const value = this.dataSets.get(name);
    if (value !== undefined) return value;
    const known = this.names.slice(0, 20).join(', ') || 'none';
    throw refused('unknown', `there is no data set "${name}"; there are: ${known}`, { name });
  }
}

function ownerOf(name: string): string {
  return `published-${name}`;
}
