import { basename } from 'node:path';
import { esteeSet, esteeWorkload } from './estee.ts';
import { GraphFile } from './graph-file.ts';
import { instanceWorkload } from './wfcommons.ts';
import type { Workload } from './workload.ts';

/**
 * All graphs of a file of JSON, whose content says what format it has. They are named after the file.
 *
 * @throws YardmasterError `ERR_GRAPH_INVALID`, `ERR_GRAPH_CYCLE` with file and place
 */
export function jsonWorkloads(text: string, source: string): Workload[] {
  const file = new GraphFile(source);
  const root = file.json(text);
  const name = basename(source, '.json');
  if (Array.isArray(root)) return [esteeWorkload(root, file, name)];
  const content = file.object(root, 'the file');
  if ('graph' in content && 'graph_name' in content) {
    return esteeSet(content, file).map((row) => ({ ...row, name: `${name}#${row.name}` }));
  }
  if ('schemaVersion' in content || 'workflow' in content) {
    return [{ ...instanceWorkload(content, file), name }];
  }
  throw file.error(
    'is neither an instance of WfCommons (schemaVersion, workflow), nor a graph of Estee (a list of tasks), nor a data set of Estee (graph_name, graph)',
  );
}
