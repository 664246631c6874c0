/** Tools for tests of transports, plugins and policies. */
export { SystemClock } from '../clocks/system-clock.ts';
export { VirtualClock } from '../clocks/virtual-clock.ts';
export { inMemory, InMemoryTransport } from '../transports/memory.ts';
export { VirtualCluster, type VirtualClusterOptions } from './virtual-cluster.ts';
export { FaultyTransport, type MessageFate, type MessageOnItsWay } from './faulty-transport.ts';
export { SocketProxy } from './faulty-transport.ts';
export type { TestRunner } from './clauses.ts';
export { storeConformance, type StoreHarness } from './store-conformance.ts';
export { executorConformance, type ExecutorHarness } from './executor-conformance.ts';
export {
  type FaultProxy,
  transportConformance,
  type TransportHarness,
} from './transport-conformance.ts';
export { replayRecording, type ReplayOptions, type ReplayResult } from '../app/past.ts';
export { readRecording } from '../app/read-log.ts';
