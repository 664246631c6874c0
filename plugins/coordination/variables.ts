import { entryBytes } from './budget.ts';
import type { CoordinationScope } from './scope.ts';
import type { GivenValue, Value } from './values.ts';
import { WaitQueue, type WaitRequest } from './wait-queue.ts';

interface Variable {
  value: Value | undefined;
  readonly readers: WaitQueue<GivenValue>;
}

/** Named values. A variable exists while it is set or a call waits for it. */
export class Variables {
  private readonly variables = new Map<string, Variable>();

  constructor(private readonly scope: CoordinationScope) {}

  /**
   * @throws YardmasterError `ERR_COORDINATION` when the space is used up; then the old value stays
   */
  set(name: string, value: Value): void {
    const { values } = this.scope;
    values.store(value, ownerOf(name));
    try {
      this.replace(this.open(name), name, value);
    } catch (error) {
      values.discard(value, ownerOf(name));
      throw error;
    }
  }

  get(name: string, request: Omit<WaitRequest, 'what'>): GivenValue | Promise<GivenValue> {
    const known = this.variables.get(name);
    if (known?.value !== undefined) return this.scope.values.give(known.value, request.client);
    const variable = this.open(name);
    try {
      return variable.readers.wait({ ...request, what: `the variable "${name}"` }, undefined);
    } catch (error) {
      this.dropUnused(name, variable);
      throw error;
    }
  }

  /** No-op when it is not set. */
  delete(name: string): void {
    const variable = this.variables.get(name);
    if (variable?.value === undefined) return;
    this.scope.values.discard(variable.value, ownerOf(name));
    variable.value = undefined;
    this.dropUnused(name, variable);
  }

  private replace(variable: Variable, name: string, value: Value): void {
    const { values } = this.scope;
    const old = variable.value;
    variable.value = value;
    if (old !== undefined) values.discard(old, ownerOf(name));
    const { readers } = variable;
    while (readers.size > 0) readers.serve((client) => values.give(value, client));
  }

  private open(name: string): Variable {
    const known = this.variables.get(name);
    if (known !== undefined) return known;
    this.scope.budget.charge(entryBytes(name), `the variable "${name}"`);
    const variable: Variable = {
      value: undefined,
      readers: new WaitQueue(this.scope, () => this.dropUnused(name, variable)),
    };
    this.variables.set(name, variable);
    return variable;
  }

  private dropUnused(name: string, { value, readers }: Variable): void {
    if (value !== undefined || readers.size > 0) return;
    if (this.variables.delete(name)) this.scope.budget.free(entryBytes(name));
  }
}

function ownerOf(name: string): string {
  return `variable-${name}`;
}
