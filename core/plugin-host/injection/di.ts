/**
 * The only import of the injection library, which needs its metadata polyfill to be loaded first.
 * Every constructor parameter names its token, because types are erased at run time.
 */
import 'reflect-metadata';

export { container as libraryContainer, inject, injectable } from 'tsyringe';
export type { DependencyContainer } from 'tsyringe';
