/**
 * `yardmaster/testing`: what authors of transports, plugins and policies need for their own tests.
 * Importing it needs no test runner.
 *
 * @module yardmaster/testing
 */
export { SystemClock } from '../clocks/system-clock.ts';
export { VirtualClock } from '../clocks/virtual-clock.ts';
export { MsgpackCodec } from '../codecs/msgpack.ts';
export { inMemory, type InMemoryOptions, InMemoryTransport } from '../transports/memory.ts';
export { drive, driveUntil, type DriveOptions } from './virtual-cluster.ts';
export { type AddressFilter, FaultyTransport, type MessageFilter } from './faulty-transport.ts';
export { VirtualCluster, type VirtualClusterOptions } from './virtual-cluster.ts';
export { type RunningWorker, startWorker } from '../app/start-worker.ts';
export type { StartWorkerOptions } from '../app/start-worker.ts';
export type { LocalEntry } from '../../core/plugin-host/local-plugins.ts';
export type { WorkerEnd } from '../../core/worker-host/create-worker.ts';
export { SocketProxy } from './socket-proxy.ts';
export {
  type FaultProxy,
  type TestRunner,
  transportConformance,
  type TransportHarness,
} from './transport-conformance.ts';
export {
  startZeroWorkers,
  type ZeroWorkers,
  type ZeroWorkersOptions,
} from '../zero-worker/index.ts';
export type {
  FramePlace,
  LogCheck,
  LoggedPolicies,
  LoggedPolicy,
  LogFrame,
  LogHeader,
} from '../../core/log/format.ts';
export type { ReplayDifference, ReplayFrame, ReplayProgress } from '../../core/log/replay.ts';
export type { GivenPolicies } from '../../core/plugin-host/load-extensions.ts';
export {
  readRecording,
  replayRecording,
  type ReplayOptions,
  type ReplayResult,
} from '../app/past.ts';
