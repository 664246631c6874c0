/** The peer's definitions of the benchmark graphs are those of ours. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { SHAPES } from '../../bench/shapes.ts';

const FOLDER = new URL('../../bench', import.meta.url).pathname;
const TASKS = 333;
/** Read by the same code as the smaller ones. */
const LARGE = /K-200|360|1T$|merge-\d\d+K|_slow-20K/;
const NAMES = Object.keys(SHAPES).filter((name) => !LARGE.test(name));

/** Prints a digest for each name: of tasks and what they need, in order, and of wanted keys. */
const SCRIPT = `
import hashlib, sys
sys.path.insert(0, sys.argv[1])
from dask_shapes import SHAPES
def needs(value, graph):
    if isinstance(value, (tuple, list)):
        for one in value:
            yield from needs(one, graph)
    elif isinstance(value, str) and value in graph:
        yield value
print(" ".join(sorted(SHAPES)))
for name in sys.argv[3:]:
    graph, keys = SHAPES[name](int(sys.argv[2]))
    lines = [" ".join([key, *needs(value, graph)]) for key, value in graph.items()]
    text = "\\n".join([*sorted(lines), *keys])
    print(hashlib.sha256(text.encode()).hexdigest())
`;

const hasPython = spawnSync('python3', ['--version']).status === 0;

it.skipIf(!hasPython)('Dask runs the same graphs', () => {
  const args = ['-c', SCRIPT, FOLDER, String(TASKS), ...NAMES];
  const { stdout, stderr } = spawnSync('python3', args, { encoding: 'utf8' });
  expect(stderr).toBe('');
  const [names, ...digests] = stdout.trim().split('\n');
  expect(names?.split(' ')).toEqual(Object.keys(SHAPES).toSorted());
  expect(NAMES.map((name, at) => [name, digests[at]])).toEqual(
    NAMES.map((name) => [name, digestOf(name)]),
  );
});

function digestOf(name: string): string {
  const { tasks, keys } = SHAPES[name]!(TASKS);
  const lines = tasks.map(({ key, dependencies }) => [key, ...dependencies].join(' '));
  const text = [...lines.toSorted(), ...keys].join('\n');
  return createHash('sha256').update(text).digest('hex');
}
