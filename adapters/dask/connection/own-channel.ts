import { Channel, type ChannelHandlers, type PluginContext } from '../../../core/api/index.ts';

/** A connection to the own scheduler, as a client, a worker or a peer of it has. It has to say hello. */
export function openChannel(plugin: PluginContext, handlers: ChannelHandlers): Channel {
  let channel: Channel | undefined;
  // Opened before `connect` returns.
  plugin.connect((connection) => {
    channel = new Channel(connection, plugin.clock, handlers);
    return channel;
  });
  return channel as unknown as Channel;
}
