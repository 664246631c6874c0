import type { Clock } from '../api/clock.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { CLOCK } from '../host/tokens.ts';
import { TransportTable } from './transport-table.ts';
import { KeptChannels, openChannel } from '../shared/channels.ts';

/** Time for a connection to a worker to be made and answered. */
const CONNECT_TIMEOUT_MS = 10_000;

/** Connections that the scheduler opens to workers, as their peer. */
@collaborator
export class WorkerChannels extends KeptChannels {
  constructor(@inject(CLOCK) clock: Clock, transports: TransportTable) {
    super('the scheduler', async (address, handlers) => {
      const transport = await transports.for(address);
      const target = { transport, address, role: 'peer', clock } as const;
      return openChannel({ ...target, timeoutMs: CONNECT_TIMEOUT_MS }, handlers);
    });
  }
}
