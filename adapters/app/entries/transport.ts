/**
 * `yardmaster/transport`: for authors of transports, and of peers that speak over a connection of their
 * own. Guide: `docs/transports.md`; the conformance suite is in `yardmaster/testing`.
 *
 * @module yardmaster/transport
 */
export {
  type Connection,
  type ConnectionHandlers,
  CONTAINER_VALUES,
  defineTransport,
  type IncomingLimits,
  type Listener,
  type PeerRole,
  type Transport,
  type TransportConnectOptions,
  type TransportContext,
  type TransportDefinition,
  type WireMessage,
} from '../../../core/api/transport.ts';
export { Channel, type ChannelHandlers, type RequestHandler } from '../../../core/api/channel.ts';
export type { Clock, Timer } from '../../../core/api/clock.ts';
export { RemoteError, YardmasterError } from '../../../core/api/errors.ts';
export { MsgpackCodec } from '../../codecs/msgpack.ts';
