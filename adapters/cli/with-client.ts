import { Client } from '../client/index.ts';

/** What commands that ask a scheduler have in common. */
export interface ClientFlags {
  readonly scheduler: string;
  readonly json?: boolean;
}

/** Connects, works, and leaves in good order, also when the work fails. */
export async function withClient<T>(
  { scheduler }: ClientFlags,
  name: string,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = await Client.connect(scheduler, { name });
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

/** Prints an answer as JSON, or as text. */
export function print(answer: unknown, text: string, { json }: Pick<ClientFlags, 'json'>): void {
  const shown = json === true ? JSON.stringify(answer, undefined, 2) : text;
  process.stdout.write(shown === '' ? '' : `${shown}\n`);
}
