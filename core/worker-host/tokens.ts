import type { Executor } from '../api/executor.ts';
import { token, type Token } from '../api/plugin.ts';
import type { Listener } from '../api/transport.ts';
import type { LogBook } from '../host/log.ts';
import type { WorkerIdentity } from '../state/worker.ts';
import type { WorkerKernel } from '../worker/worker-kernel.ts';
import type { WorkerHostOptions } from './worker-options.ts';

/** What a worker is given. The token of each of its own collaborators is in the file of that class. */
export const EXECUTOR: Token<Executor> = token('executor');
export const SERVER_ID: Token<string> = token('server-id');
export const WORKER_LOG: Token<LogBook> = token('worker-log');
export const WORKER_OPTIONS: Token<WorkerHostOptions> = token('worker-options');

/** What is known once the worker listens. */
export const PEER_LISTENER: Token<Listener> = token('peer-listener');
export const WORKER_IDENTITY: Token<WorkerIdentity> = token('worker-identity');
export const WORKER_KERNEL: Token<WorkerKernel> = token('worker-kernel');
