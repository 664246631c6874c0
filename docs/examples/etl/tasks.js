/** What runs on workers. Tables travel between tasks as bytes of Parquet. */
import { defineTasks } from 'yardmaster';
import { toColumns, toParquet } from './duckdb.js';

const BINS = 1024;
/** Narrow where amounts are small: the same share of an amount everywhere. */
const BIN_OF_AMOUNT = `least(${BINS - 1}, floor(50 * log2(1 + amount)))::int`;

export const tasks = defineTasks(import.meta.url, {
  /** The time of change is an argument because the rows depend on it: a file that has changed is read anew. */
  parse(path, changedMs) {
    return toParquet(`
      select customer::int as customer, try_cast(amount as decimal(12, 2)) as amount
      from read_csv('${path}', all_varchar = true)
      where try_cast(amount as decimal(12, 2)) is not null`);
  },

  /** First pass: how many amounts are in each bin. */
  async histogram(orders) {
    const sql = `select ${BIN_OF_AMOUNT} as bin, count(*)::double from orders group by all`;
    const [bins = [], counts = []] = await toColumns(sql, { orders });
    const histogram = new Float64Array(BINS);
    for (const [index, bin] of bins.entries()) histogram[bin] = counts[index];
    return histogram;
  },

  add: (histograms) => histograms[0].map((_, bin) => sum(histograms.map((counts) => counts[bin]))),

  /** In which bin the percentile is, and which of its amounts it is. */
  findBin(histogram, share) {
    let rank = Math.ceil(share * sum(histogram));
    const bin = histogram.findIndex((count) => (rank -= count) <= 0);
    return { bin, rank: rank + histogram[bin] };
  },

  /** Second pass: the amounts of that bin alone. */
  async amountsIn(orders, { bin }) {
    const sql = `select amount::double from orders where ${BIN_OF_AMOUNT} = ${bin}`;
    const [amounts = []] = await toColumns(sql, { orders });
    return Float64Array.from(amounts);
  },

  concat: (parts) => Float64Array.from(parts.flatMap((amounts) => [...amounts])),

  amountAt: (amounts, { rank }) => amounts.toSorted()[rank - 1],

  totals(orders, amountMax) {
    return toParquet(
      `select customer, sum(amount) as total, count(*) as orders
       from orders where amount <= ${amountMax} group by customer`,
      { orders },
    );
  },

  combine(parts) {
    return toParquet(
      `select customer, sum(total)::decimal(18, 2) as total, sum(orders)::bigint as orders
       from parts group by customer`,
      { parts },
    );
  },

  /** The same as `parse` for the time of change. */
  byRegion(totals, customersPath, changedMs) {
    return toParquet(
      `select region, sum(total)::decimal(18, 2) as total, sum(orders)::bigint as orders
       from totals join read_csv('${customersPath}') using (customer)
       group by region order by region`,
      { totals },
    );
  },
});

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
