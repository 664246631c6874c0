import type { Executor } from '../api/executor.ts';
import { token, type Token } from '../api/plugin.ts';
import type { Listener } from '../api/transport.ts';
import type { WorkerIdentity } from '../state/worker.ts';
import type { WorkerHostOptions } from './worker-options.ts';

/** The tokens of what a worker is given besides collaborators, and that is no class. */
export const EXECUTOR: Token<Executor> = token('executor');
export const WORKER_OPTIONS: Token<WorkerHostOptions> = token('worker-options');

/** The tokens of what exists once the worker listens. */
export const PEER_LISTENER: Token<Listener> = token('peer-listener');
export const WORKER_IDENTITY: Token<WorkerIdentity> = token('worker-identity');
