import type { Builtins } from '../../core/api/index.ts';
import { deciders } from './builtin-deciders.ts';

/**
 * Everything that a configuration can name by a short name, and nothing else can be. Each is loaded
 * when it is first used.
 */
export const builtins: Builtins = {
  ...deciders,

  // Plugins.
  dashboard: async () => (await import('../dashboard/index.ts')).default,
  dask: async () => (await import('../dask/index.ts')).default,
  opentelemetry: async () => (await import('../opentelemetry/index.ts')).default,
  coordination: async () => (await import('../../plugins/coordination.ts')).default,
  report: async () => (await import('../report/plugin.ts')).default,

  // Transports, by the scheme of their addresses.
  tcp: async () => (await import('../peers/tcp.ts')).tcp,
  tls: async () => (await import('../transports/tls.ts')).tls,
  inmemory: async () => (await import('../transports/memory.ts')).inMemory,

  // Executors.
  'executor/threads': async () => (await import('../executors/threads/index.ts')).threads,
  'executor/inline': async () => (await import('../executors/inline.ts')).inline,
};
