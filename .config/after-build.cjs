// What the compiler leaves to do: files that it does not copy, and the mode of the command.
const { chmodSync, copyFileSync, mkdirSync } = require('node:fs');
const { dirname, join } = require('node:path');

const root = join(module.path, '..');
for (const file of ['adapters/dask-wire/graph/helper.py', 'adapters/demo/dask/demo.py']) {
  mkdirSync(dirname(join(root, 'dist', file)), { recursive: true });
  copyFileSync(join(root, file), join(root, 'dist', file));
}
chmodSync(join(root, 'dist/adapters/cli/main.js'), 0o755);
