/** DuckDB for tasks: tables come as bytes of Parquet, and results leave as such, or as columns. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';

/** One for each thread. The cluster runs the parts side by side, so each has one thread and its share of the memory. */
const database = DuckDBInstance.create(':memory:', { threads: '1', memory_limit: '256MB' });

/**
 * @param sql a query
 * @param tables by name: Parquet as bytes, or an array of such
 * @returns the rows, as bytes of Parquet
 */
export function toParquet(sql, tables = {}) {
  return withTables(tables, async (connection, folder) => {
    const path = join(folder, 'result.parquet');
    await connection.run(`copy (${sql}) to '${path}' (format parquet, compression lz4_raw)`);
    return readFile(path);
  });
}

/** The same, as an array for each column. */
export function toColumns(sql, tables = {}) {
  return withTables(tables, async (connection) => {
    return (await connection.runAndReadAll(sql)).getColumnsJS();
  });
}

/** DuckDB reads Parquet from files: the tables are in a folder of this call, and views have their names. */
async function withTables(tables, work) {
  const connection = await (await database).connect();
  const folder = await mkdtemp(join(tmpdir(), 'etl-'));
  try {
    for (const [name, table] of Object.entries(tables)) {
      for (const [index, part] of [table].flat().entries())
        await writeFile(join(folder, `${name}-${index}.parquet`), part);
      await connection.run(`create temp view "${name}" as from '${folder}/${name}-*.parquet'`);
    }
    return await work(connection, folder);
  } finally {
    connection.closeSync();
    await rm(folder, { recursive: true });
  }
}
