/**
 * The only access to the injection library, which needs its metadata polyfill to be loaded first.
 * Every constructor parameter names its token: types leave no trace at run time.
 */
import 'reflect-metadata';
import { inject as injectId } from 'tsyringe';
import type { Token } from '../../api/plugin.ts';

export { container as libraryContainer, injectable } from 'tsyringe';
export type { DependencyContainer } from 'tsyringe';

/** Tokens of the constructor parameters of a class, by position. */
const declared = new WeakMap<object, Token<unknown>[]>();

/** Says what a constructor parameter is given: `constructor(@inject(CLOCK) private readonly clock: Clock)`. */
export function inject(token: Token<unknown>): ParameterDecorator {
  return (target, key, index) => {
    const tokens = declared.get(target) ?? [];
    declared.set(target, tokens);
    tokens[index] = token;
    injectId(token.id)(target, key, index);
  };
}

/** The tokens that the parameters of a class were declared with; undefined: none were. */
export function declaredTokens(target: object): readonly Token<unknown>[] | undefined {
  return declared.get(target);
}
