/** DuckDB alone: `node duckdb.js ORDERS CUSTOMERS OUT`. */
import process from 'node:process';
import { DuckDBInstance } from '@duckdb/node-api';

const [orders, customers, out] = process.argv.slice(2);
const instance = await DuckDBInstance.create(':memory:', { threads: '2' });
const connection = await instance.connect();
await connection.run(`create temp table parsed as
  select customer::int as customer, try_cast(amount as decimal(12, 2)) as amount
  from read_csv('${orders}', all_varchar = true)
  where try_cast(amount as decimal(12, 2)) is not null`);
await connection.run(`copy (
  select region, sum(amount)::decimal(18, 2) as total, count(*)::bigint as orders
  from parsed join read_csv('${customers}') using (customer)
  where amount <= (select quantile_disc(amount::double, 0.99) from parsed)
  group by region order by region) to '${out}' (format parquet)`);
const result = await connection.runAndReadAll(
  `select region, total::varchar, orders from '${out}'`,
);
for (const row of result.getRows())
  process.stdout.write(`${row[0]}: ${row[1]} in ${row[2]} orders\n`);
