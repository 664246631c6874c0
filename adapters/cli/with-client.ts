import { transportsOfFile } from '../app/configured-transports.ts';
import { Client } from '../client/index.ts';
import { say } from './terminal.ts';

/** What commands that ask a scheduler have in common. */
export interface ClientFlags {
  readonly scheduler: string;
  /** Its `scheduler.transport` reaches the scheduler. */
  readonly config?: string;
  readonly json?: boolean;
}

/** Connects, works, and leaves in good order, also when the work fails. */
export async function withClient<T>(
  { scheduler, config }: Pick<ClientFlags, 'scheduler' | 'config'>,
  name: string,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const transports = await transportsOfFile(config);
  const client = await Client.connect(scheduler, { name, transports });
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

/** Prints an answer as JSON, or as text. */
export function print(answer: unknown, text: string, { json }: Pick<ClientFlags, 'json'>): void {
  const shown = json === true ? JSON.stringify(answer, undefined, 2) : text;
  say(shown === '' ? '' : `${shown}\n`);
}
