/** Connections for the threads of a worker, through the worker. */
export { relayConnection } from './relay.ts';
export { type TunnelRequest, TunnelTransport } from './tunnel-transport.ts';
