import type { YardmasterError } from '../api/errors.ts';
import { token, type Token } from '../api/plugin.ts';
import type { LogBook } from '../host/log-book.ts';
import type { TransportTable } from '../host/transport-table.ts';
import type { Insight } from '../kernel/insight/insight.ts';
import type { SchedulerKernel } from '../kernel/scheduler-kernel.ts';
import type { ClusterState } from '../state/cluster.ts';

/** What a scheduler is given. The token of each of its own collaborators is in the file of that class. */
export const LOG_BOOK: Token<LogBook> = token('log-book');
export const ON_CRASH: Token<(error: YardmasterError) => void> = token('on-crash');
export const SERVER_ID: Token<string> = token('server-id');
export const TRANSPORTS: Token<TransportTable> = token('transports');

/** The kernel, and the parts of it that many collaborators read. */
export const KERNEL: Token<SchedulerKernel> = token('kernel');
export const CLUSTER: Token<ClusterState> = token('cluster');
export const INSIGHT: Token<Insight> = token('insight');
