import { DuckDBInstance } from '@duckdb/node-api';

const BINS = 1024;
const BIN_OF_AMOUNT = `least(${BINS - 1}, floor(50 * log2(1 + amount)))::int`;

const database = DuckDBInstance.create(':memory:', { threads: '1', memory_limit: '256MB' });

async function query(sql) {
  const connection = await (await database).connect();
  try {
    return (await connection.runAndReadAll(sql)).getColumnsJS();
  } finally {
    connection.closeSync();
  }
}

const write = (sql, path) =>
  query(`copy (${sql}) to '${path}' (format parquet, compression lz4_raw)`);
const table = (paths) => `read_parquet([${paths.map((path) => `'${path}'`).join(', ')}])`;

export const parse = ({ paths: [csv], path }) =>
  write(
    `select customer::int as customer, try_cast(amount as decimal(12, 2)) as amount
     from read_csv('${csv}', all_varchar = true)
     where try_cast(amount as decimal(12, 2)) is not null`,
    path,
  );

export async function histogram({ path }) {
  const sql = `select ${BIN_OF_AMOUNT} as bin, count(*)::double from '${path}' group by all`;
  const [bins = [], counts = []] = await query(sql);
  const result = new Float64Array(BINS);
  for (const [index, bin] of bins.entries()) result[bin] = counts[index];
  return result;
}

export async function amountsIn({ path, bin }) {
  const sql = `select amount::double from '${path}' where ${BIN_OF_AMOUNT} = ${bin}`;
  const [amounts = []] = await query(sql);
  return Float64Array.from(amounts);
}

export const totals = ({ paths, path, amountMax }) =>
  write(
    `select customer, sum(amount) as total, count(*) as orders
     from ${table(paths)} where amount <= ${amountMax} group by customer`,
    path,
  );

export const combine = ({ paths, path }) =>
  write(
    `select customer, sum(total)::decimal(18, 2) as total, sum(orders)::bigint as orders
     from ${table(paths)} group by customer`,
    path,
  );

export const byRegion = ({ paths, path, customers }) =>
  write(
    `select region, sum(total)::decimal(18, 2) as total, sum(orders)::bigint as orders
     from ${table(paths)} join read_csv('${customers}') using (customer)
     group by region order by region`,
    path,
  );
