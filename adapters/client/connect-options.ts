import { inspect } from 'node:util';
import { type Clock, type Transport, YardmasterError } from '../../core/api/index.ts';
import {
  checkCall,
  DURATION,
  FUNCTION,
  oneOf,
  RESULT_STORE,
  type Rules,
  TEXT,
} from '../../core/shared/schema.ts';
import { type OnSchedulerLost, RECONNECT_TIMEOUT_MS } from '../../core/shared/reconnect.ts';
import { SCHEDULER_TTL_MS } from '../../core/shared/channels.ts';
import { codeRootAt } from '../tasks/index.ts';
import {
  NETWORK_RULES,
  type NetworkOptions,
  openTransports,
} from '../transports/open-transports.ts';
import type { Reconnected, SessionOptions } from './session.ts';
import type { ResultStoreOption } from './options.ts';

/** The options of a connection. */
export interface ConnectOptions extends NetworkOptions {
  /** For people; part of the client's key. Default `client`. */
  readonly name?: string;
  /** Milliseconds for the connection to stand. Default 10 000. */
  readonly timeoutMs?: number;
  /**
   * The reaction when the scheduler is gone: `close` fails all that is open with `ERR_CLOSED`; `reconnect` tries to
   * come back, and fails what the scheduler then does not know with `ERR_LOST`. Default `close`.
   */
  readonly onSchedulerLost?: OnSchedulerLost;
  /** With `reconnect`: milliseconds after which it gives up and closes. Default 60 000. */
  readonly reconnectTimeoutMs?: number;
  /**
   * Milliseconds without an answer after which the scheduler counts as gone; Infinity: never. Default 300 000.
   */
  readonly schedulerTtlMs?: number;
  /** Called when the scheduler has not answered for so many milliseconds, before it counts as gone. */
  readonly onSchedulerSilent?: (silentMs: number) => void;
  /** With `reconnect`: called each time it is back, with the keys that were lost. */
  readonly onReconnected?: (event: Reconnected) => void;
  /** The store of results that `persist` asks for, unless a submission names another one. Default: none. */
  readonly resultStore?: ResultStoreOption;
  /**
   * The project of the modules of tasks: they are named by their path in it, and workers look for that path in theirs
   * (`--code-root`). Default: the project of the current folder (the nearest folder with a `package.json`), if the module
   * is in it, else that of the module.
   */
  readonly codeRoot?: string;
}

const CONNECT_RULES: Rules<ConnectOptions> = {
  ...NETWORK_RULES,
  name: TEXT,
  timeoutMs: DURATION,
  onSchedulerLost: oneOf('close', 'reconnect'),
  reconnectTimeoutMs: DURATION,
  schedulerTtlMs: DURATION,
  onSchedulerSilent: FUNCTION,
  onReconnected: FUNCTION,
  resultStore: RESULT_STORE,
  codeRoot: TEXT,
};

/** Default of `timeoutMs`. */
export const CONNECT_TIMEOUT_MS = 10_000;

/** @throws YardmasterError `ERR_CONFIG`, `ERR_CONNECT` */
export function checkConnection(address: unknown, options: ConnectOptions): void {
  checkCall('Client.connect', options, CONNECT_RULES);
  if (typeof address === 'string' && address !== '') return;
  throw new YardmasterError(
    'ERR_CONNECT',
    `Client.connect wants the address of a scheduler, such as tcp://127.0.0.1:8786, got ${inspect(address, { depth: 0 })}`,
  );
}

/** Results are fetched from workers with the keys by which the scheduler is found. */
export async function transportsFor(
  scheduler: string,
  { transports: given, access, tls }: ConnectOptions,
  clock: Clock,
): Promise<readonly Transport[]> {
  const transports = await openTransports(given, clock);
  const isGiven = transports.some(({ scheme }) => scheme === 'tls');
  if (isGiven || !scheduler.startsWith('tls:')) return transports;
  const { TlsTransport } = await import('../transports/tls.ts');
  const file = {
    access,
    certificates: tls,
  };
  return [...transports, new TlsTransport(clock, { scheduler, ...file })];
}

/** The options of the session. @throws YardmasterError `ERR_CONFIG` when `codeRoot` does not exist */
export function sessionOptions(options: ConnectOptions): SessionOptions {
  const { onSchedulerLost, reconnectTimeoutMs: timeoutMs = RECONNECT_TIMEOUT_MS } = options;
  const { onReconnected, onSchedulerSilent: onSilent, schedulerTtlMs } = options;
  const ttlMs = schedulerTtlMs ?? SCHEDULER_TTL_MS;
  const answers = { ttlMs, onSilent };
  const root = options.codeRoot === undefined ? {} : { codeRoot: codeRootAt(options.codeRoot) };
  if (onSchedulerLost !== 'reconnect') return { answers, ...root };
  return {
    answers,
    ...root,
    reconnect: { timeoutMs },
    ...(onReconnected === undefined ? {} : { onReconnected }),
  };
}
