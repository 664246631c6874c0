// What the compiler leaves to do: files that it does not copy, and the mode of the command.
const { chmodSync, cpSync } = require('node:fs');
const { join } = require('node:path');

const root = join(module.path, '..');
const COPIED = [
  'adapters/dask/yardmaster_companion',
  'adapters/dask/graph/helper.py',
  'adapters/demo/dask-demo.py',
  'adapters/workloads/dask_graph.py',
  'adapters/workloads/recorded',
];
for (const path of COPIED) cpSync(join(root, path), join(root, 'dist', path), { recursive: true });
chmodSync(join(root, 'dist/bundle/cli.js'), 0o755);
