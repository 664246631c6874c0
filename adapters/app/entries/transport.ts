/**
 * `yardmaster/transport`: for authors of transports, and of peers that speak over a connection of their
 * own. Guide: `docs/transports.md`; the conformance suite is in `yardmaster/testing`.
 *
 * @module yardmaster/transport
 */
export * from '../../../core/api/transport.ts';
export { Channel, type ChannelHandlers, type RequestHandler } from '../../../core/api/channel.ts';
export type { Clock, Timer } from '../../../core/api/clock.ts';
export type { Role } from '../../../core/messages/protocol.ts';
export { RemoteError, YardmasterError } from '../../../core/api/errors.ts';
export type { TransportInput } from '../../../core/plugin-host/transport-table.ts';
export { MsgpackCodec } from '../../codecs/msgpack.ts';
