import type { ActorHandle } from './actor-handle.ts';
import type { TaskFunction } from './define-tasks.ts';

/** Any class: the parameters are `never` so that every one of them fits. */
export type AnyClass = new (...args: never[]) => object;

/**
 * A class that workers can find. As a task it makes an actor: an object that lives on one worker, and
 * whose handle is the result of the task. With `new` it makes an ordinary object, here and now.
 */
export interface ActorClass<
  Args extends readonly unknown[] = never[],
  T extends object = object,
> extends TaskFunction<Args, ActorHandle<T>> {
  new (...args: Args): T;
}

/** The handle of a class. */
export type ActorClassOf<C extends AnyClass> = ActorClass<
  ConstructorParameters<C>,
  InstanceType<C>
>;

const BRAND = Symbol.for('yardmaster.actorClass');

/** True when it is written as a class: the prototype of a function can be replaced. */
export function isClass(value: unknown): value is AnyClass {
  if (typeof value !== 'function') return false;
  return Object.getOwnPropertyDescriptor(value, 'prototype')?.writable === false;
}

/** True when it is what `defineTasks` gave for a class. */
export function isActorClass(value: unknown): value is ActorClass {
  return typeof value === 'function' && BRAND in value;
}

/** Says of the handle of a task that it is one of a class. */
export function markAsActorClass(handle: object, made: AnyClass): void {
  Object.defineProperties(handle, {
    [BRAND]: { value: true },
    prototype: { value: made.prototype as object },
  });
}
