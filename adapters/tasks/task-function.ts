/** Any function: the parameters are `never` so that every one of them fits. */
export type AnyFunction = (...args: never[]) => unknown;

/**
 * A function that workers can find: it knows the module that it comes from. Calling it runs it here
 * and now, like the function it was made of.
 */
export interface TaskFunction<Args extends readonly unknown[] = never[], Returned = unknown> {
  (...args: Args): Returned;
  /** URL of the module that defines it. */
  readonly module: string;
  /** Name under which `defineTasks` received it, or of the export. */
  readonly name: string;
  /**
   * SHA-256 of the module's source, read when first asked for.
   * @throws YardmasterError `ERR_FUNCTION_MISSING` when the source cannot be read
   */
  readonly version: string;
  /** How many of it may run in a thread at once, if it was given to `concurrent`. */
  readonly concurrency?: number;
}

/** The handle of a function type. */
export type TaskFunctionOf<F extends AnyFunction> = TaskFunction<Parameters<F>, ReturnType<F>>;
