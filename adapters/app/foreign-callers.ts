import type { Clock, Logger } from '../../core/api/index.ts';
import { inBackground } from '../../core/shared/background.ts';
import type { Scheduler } from '../../core/scheduler-host/scheduler.ts';
import type { tcp } from '../dask/interop/tcp.ts';
import type { ForeignCaller } from '../transports/tcp/index.ts';

/** Hosts that are remembered, so that each is warned of once. */
const HOSTS_MAX = 1000;

/**
 * Answers peers of Dask that connect to a TCP address of the scheduler's own protocol: they end with an
 * error that names the address for Dask, or says how to open one. Warns once for each host.
 */
export class ForeignCallers {
  /** Set once it is made; no caller comes before. */
  scheduler: Scheduler | undefined;
  private readonly hosts = new Set<string>();

  constructor(
    private readonly clock: Clock,
    private readonly log: Logger,
  ) {}

  /** The TCP transport, with this as the handler of foreign callers. */
  async tcp(): Promise<typeof tcp> {
    const { tcp: definition, tcpWithDask } = await import('../dask/interop/tcp.ts');
    const answer = (caller: ForeignCaller): void => this.answer(caller);
    return {
      ...definition,
      create: ({ clock }, options) => tcpWithDask(clock, options, answer),
    };
  }

  private answer(caller: ForeignCaller): void {
    inBackground(this.refuse(caller), (error) => {
      const { peerAddress: peer } = caller;
      this.log.debug(
        { err: error, peer },
        `a caller that is not ours was closed: ${error.message}`,
      );
    });
  }

  private async refuse({ socket, peerAddress: peer }: ForeignCaller): Promise<void> {
    const { refuseDaskPeer } = await import('../dask/connection/wrong-port.ts');
    await refuseDaskPeer(socket, this.clock, async (called) => {
      const advice = await this.advice();
      if (this.isNewHost(peer)) {
        const text = `a worker or client of Dask (${peer}) connected to ${called}, where the scheduler listens for workers and clients of Yardmaster; ${advice}`;
        this.log.warn({ peer, address: called }, text);
      }
      return `${called} is where the scheduler listens for workers and clients of Yardmaster, not for those of Dask; ${advice}`;
    });
  }

  private async advice(): Promise<string> {
    const { scheduler } = this;
    if (scheduler?.plugins.some(({ name }) => name === 'dask') === true) {
      return `those of Dask connect to ${String(await scheduler.command('dask.address'))}`;
    }
    return 'it has no address for Dask: start it with `yardmaster scheduler --dask`, or add the plugin "dask" to its configuration';
  }

  private isNewHost(peer: string): boolean {
    const host = peer.replace(/:\d+$/, '');
    if (this.hosts.has(host) || this.hosts.size >= HOSTS_MAX) return false;
    this.hosts.add(host);
    return true;
  }
}
