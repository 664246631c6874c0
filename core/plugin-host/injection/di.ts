/**
 * The only door to the injection library, which needs its metadata polyfill to be there first.
 * Every constructor parameter names its token: types leave no trace at run time.
 */
import 'reflect-metadata';

export { container as libraryContainer, inject, injectable } from 'tsyringe';
export type { DependencyContainer } from 'tsyringe';
