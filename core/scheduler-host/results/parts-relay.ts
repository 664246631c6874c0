import type { Channel } from '../../api/channel.ts';
import { PART_BYTES } from '../../shared/fetch-data.ts';
import type { WireMessage } from '../../api/transport.ts';
import type { GetPartReply, GetPartRequest, OfferedParts } from '../../messages/protocol.ts';

interface Relayed {
  readonly channel: Channel;
  readonly handle: number;
  readonly timeoutMs: number;
  remainingBytes: number;
}

/**
 * Hands on parts of results from workers to a client that cannot reach them. Holds no more of a result
 * than the parts that the client has asked for.
 */
export class PartsRelay {
  private readonly relayed = new Map<number, Relayed>();
  private lastHandle = 0;

  /**
   * @param timeoutMs - within which the worker has to answer
   * @returns the offer as it is made to the client
   */
  add(channel: Channel, { key, nbytes, handle }: OfferedParts, timeoutMs: number): OfferedParts {
    const own = ++this.lastHandle;
    this.relayed.set(own, { channel, handle, timeoutMs, remainingBytes: nbytes });
    return { key, nbytes, handle: own };
  }

  /** Never rejects: a worker that is gone has lost the result. */
  async read({ handle, nbytes }: GetPartRequest): Promise<GetPartReply> {
    const relayed = this.relayed.get(handle);
    if (relayed === undefined) return {};
    const { channel, timeoutMs } = relayed;
    const request = { handle: relayed.handle, nbytes: Math.min(nbytes, PART_BYTES) };
    try {
      const reply = await channel.request<GetPartReply>('get-part', request, timeoutMs);
      relayed.remainingBytes -= reply.bytes?.byteLength ?? Infinity;
      if (relayed.remainingBytes <= 0) this.relayed.delete(handle);
      return reply;
    } catch {
      this.relayed.delete(handle);
      return {};
    }
  }

  /** What the client gave up. */
  drop({ handles }: WireMessage): void {
    if (!Array.isArray(handles)) return;
    for (const handle of handles as unknown[]) this.end(handle as number);
  }

  /** The client is gone. */
  close(): void {
    for (const handle of [...this.relayed.keys()]) this.end(handle);
  }

  private end(own: number): void {
    const relayed = this.relayed.get(own);
    if (relayed === undefined) return;
    this.relayed.delete(own);
    const { channel, handle } = relayed;
    if (!channel.isClosed) channel.send({ op: 'drop-parts', handles: [handle] });
  }
}
