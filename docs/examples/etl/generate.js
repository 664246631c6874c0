/** Makes the data of the example: `parts` files of orders, and the customers. The same data each time. */
import { existsSync } from 'node:fs';
import { mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';

const CUSTOMERS = 2000;

export async function generate(folder, parts, rows) {
  await mkdir(folder, { recursive: true });
  const connection = await (await DuckDBInstance.create()).connect();
  const write = async (name, sql) => {
    const path = join(folder, name);
    if (!existsSync(path)) {
      await connection.run(`copy (${sql}) to '${path}.tmp' (format csv, header)`);
      await rename(`${path}.tmp`, path);
    }
    return path;
  };
  // One amount in a hundred is missing; few are very large.
  const orders = Array.from({ length: parts }, (_, part) => {
    const sql = `
      select id, hash(id) % ${CUSTOMERS} as customer, 'product ' || (hash(id + 1) % 500) as product,
        date '2026-01-01' + (hash(id + 2) % 365)::int as day,
        if(hash(id + 3) % 100 = 0, 'n/a',
          (exp(hash(id + 4) % 100000 / 100000 * 9) / 10)::decimal(12, 2)::varchar) as amount
      from (select range as id from range(${part * rows}, ${(part + 1) * rows}))`;
    return write(`orders-${part}-${rows}.csv`, sql);
  });
  const region = `['north', 'south', 'east', 'west'][(1 + hash(range) % 4)::int]`;
  const sql = `select range as customer, ${region} as region from range(${CUSTOMERS})`;
  const customers = await write('customers.csv', sql);
  return { orders: await Promise.all(orders), customers };
}
