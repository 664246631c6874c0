/**
 * The imports between folders, in the project and in a small copy of its layout in which every rule
 * is broken once: a rule that nothing breaks may as well not work.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PRODUCT, ROOT } from './source-files.ts';

const CONFIG = join(ROOT, '.config/dependency-cruiser.cjs');
const CRUISER = join(ROOT, 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs');

const { forbidden } = createRequire(import.meta.url)(CONFIG) as {
  forbidden: readonly { readonly name: string }[];
};

interface Violation {
  readonly from: string;
  readonly to: string;
  readonly rule: { readonly name: string };
}

/** Files that break a rule, and the rule. */
const BREACHES: readonly (readonly [rule: string, path: string, code: string])[] = [
  ['kernel-is-sans-io', 'core/kernel/uses-node.ts', "import 'node:net';"],
  ['kernel-is-sans-io', 'core/worker/uses-npm.ts', "import 'tsyringe';"],
  ['kernel-is-sans-io', 'core/kernel/uses-host.ts', "import '../scheduler-host/target.ts';"],
  ['state-below-kernel', 'core/state/uses-kernel.ts', "import '../kernel/target.ts';"],
  ['state-below-kernel', 'core/messages/uses-api.ts', "import '../api/target.ts';"],
  ['api-sees-state', 'core/api/uses-kernel.ts', "import '../kernel/target.ts';"],
  ['shared-sees-api', 'core/shared/uses-host.ts', "import '../scheduler-host/target.ts';"],
  ['log-sees-kernel', 'core/log/uses-host.ts', "import '../scheduler-host/target.ts';"],
  ['core-stays-inside', 'core/scheduler-host/uses-plugin.ts', "import '../../plugins/target.ts';"],
  ['hosts-apart', 'core/plugin-host/uses-host.ts', "import '../worker-host/target.ts';"],
  [
    'scheduler-host-is-no-worker',
    'core/scheduler-host/uses-worker.ts',
    "import '../worker-host/target.ts';",
  ],
  [
    'worker-host-is-no-scheduler',
    'core/worker-host/uses-scheduler.ts',
    "import '../scheduler-host/target.ts';",
  ],
  ['only-injection-injects', 'core/scheduler-host/injects.ts', "import 'tsyringe';"],
  ['policies-see-api', 'policies/x/uses-node.ts', "import 'node:fs';"],
  ['policies-see-api', 'policies/x/uses-kernel.ts', "import '../../core/kernel/target.ts';"],
  ['plugins-see-api', 'plugins/uses-adapter.ts', "import '../adapters/x/target.ts';"],
  ['plugins-see-api', 'plugins/uses-state.ts', "import '../core/state/target.ts';"],
  ['adapters-see-api', 'adapters/x/uses-kernel.ts', "import '../../core/kernel/target.ts';"],
  ['adapters-see-api', 'adapters/x/uses-policy.ts', "import '../../policies/x/target.ts';"],
  ['ways-below-engines', 'adapters/transports/uses-dask.ts', "import('../dask/target.ts');"],
  ['ways-below-engines', 'adapters/executors/uses-client.ts', "import '../client/target.ts';"],
  ['dask-is-a-guest', 'adapters/dask/uses-client.ts', "import '../client/target.ts';"],
  ['dashboard-is-a-guest', 'adapters/dashboard/uses-dask.ts', "import '../dask/target.ts';"],
  ['adapters-below-app', 'adapters/x/uses-app.ts', "import '../app/target.ts';"],
  ['nothing-imports-test', 'adapters/app/uses-test.ts', "import '../../test/target.ts';"],
  ['no-circular', 'policies/x/one.ts', "import './other.ts';"],
];

/** What the rules allow. */
const FINE: readonly (readonly [path: string, code: string])[] = [
  ['core/plugin-host/injection.ts', "import 'tsyringe';"],
  ['core/kernel/uses-state.ts', "import '../state/target.ts';\nimport '../api/target.ts';"],
  ['policies/x/uses-api.ts', "import '../../core/api/target.ts';"],
  ['plugins/uses-shared.ts', "import '../core/shared/uses-host.ts';"],
  ['plugins/uses-policy.ts', "import '../policies/x/target.ts';"],
  ['adapters/x/uses-node.ts', "import 'node:net';\nimport '../../core/api/target.ts';"],
  ['adapters/app/uses-host.ts', "import '../../core/scheduler-host/target.ts';"],
  ['adapters/simulator/uses-worker.ts', "import '../../core/worker-host/target.ts';"],
  ['adapters/x/circle.ts', "export type { Other } from './other-type.ts';"],
  ['core/kernel/one.ts', "export type { Other } from './other.ts';"],
  ['test/uses-all.ts', "import '../core/kernel/target.ts';\nimport '../plugins/target.ts';"],
];

const TARGETS = [
  ...['kernel', 'scheduler-host', 'worker-host', 'api', 'state'].map(
    (folder) => `core/${folder}/target.ts`,
  ),
  ...['app', 'client', 'dask'].map((folder) => `adapters/${folder}/target.ts`),
  ...['plugins/target.ts', 'policies/x/target.ts', 'adapters/x/target.ts', 'test/target.ts'],
];

interface Module {
  readonly source: string;
  readonly dependencies: readonly { readonly resolved: string }[];
}

interface Cruise {
  readonly violations: readonly Violation[];
  /** The folders of the product that are in a circle, or import one that is. */
  readonly circling: readonly string[];
}

async function cruise(folder: string): Promise<Cruise> {
  const args = ['--config', CONFIG, '--output-type', 'json', ...PRODUCT, 'test'];
  const options = { cwd: folder, maxBuffer: 2 ** 27 };
  // It exits with an error when there are violations in some of its outputs, but not in this one.
  const { stdout } = await promisify(execFile)(process.execPath, [CRUISER, ...args], options);
  const { summary, modules } = JSON.parse(stdout) as {
    summary: { violations: Violation[] };
    modules: Module[];
  };
  return { violations: summary.violations, circling: circlingIn(modules) };
}

/** A folder and those inside it belong together. */
function circlingIn(modules: readonly Module[]): string[] {
  const imports = new Map<string, Set<string>>();
  for (const { source, dependencies } of modules) {
    const from = dirname(source);
    if (!PRODUCT.some((top) => `${from}/`.startsWith(`${top}/`))) continue;
    const known = imports.get(from) ?? new Set();
    imports.set(from, known);
    for (const { resolved } of dependencies) {
      const to = dirname(resolved);
      if (!`${to}/`.startsWith(`${from}/`) && !`${from}/`.startsWith(`${to}/`)) known.add(to);
    }
  }
  // What imports nothing that is left is in no circle.
  const isFree = ([, known]: [string, Set<string>]): boolean =>
    ![...known].some((to) => imports.has(to));
  for (let free; (free = [...imports].find(isFree)) !== undefined;) imports.delete(free[0]);
  return [...imports.keys()].toSorted();
}

function plant(folder: string): void {
  const files = [
    ['package.json', '{ "type": "module", "dependencies": { "tsyringe": "1.0.0" } }'],
    [
      'tsconfig.json',
      '{ "compilerOptions": { "module": "nodenext", "allowImportingTsExtensions": true } }',
    ],
    ['node_modules/tsyringe/package.json', '{ "name": "tsyringe", "main": "index.js" }'],
    ['node_modules/tsyringe/index.js', ''],
    // A circle is reported once, for the file that is met first.
    ['policies/x/other.ts', "import './one.ts';"],
    [
      'adapters/x/other-type.ts',
      "import type { Other } from './circle.ts';\nexport type { Other };",
    ],
    ['core/kernel/other.ts', "import type { Other } from './one.ts';\nexport type { Other };"],
    ...TARGETS.map((path) => [path, 'export {};']),
    ['adapters/one/a.ts', "export type * from '../two/a.ts';"],
    ['adapters/two/a.ts', 'export {};'],
    ['adapters/two/b.ts', "export type * from '../one/b.ts';"],
    ['adapters/one/b.ts', 'export {};'],
    ...FINE,
    ...BREACHES.map(([, path, code]) => [path, code]),
  ] as const;
  for (const [path, text] of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), `${text}\n`);
  }
}

it('the project breaks no rule', async () => {
  const { violations, circling } = await cruise(ROOT);
  expect(violations.map(({ rule, from, to }) => `${rule.name}: ${from} -> ${to}`)).toEqual([]);
  expect(circling).toEqual([]);
});

it('every rule is broken in the copy', () => {
  const broken = new Set(BREACHES.map(([rule]) => rule));
  expect([...broken].toSorted()).toEqual(forbidden.map(({ name }) => name).toSorted());
});

describe('in the copy', () => {
  const folder = mkdtempSync(join(tmpdir(), 'yardmaster-boundaries-'));
  let found: readonly Violation[] = [];
  let circling: readonly string[] = [];

  beforeAll(async () => {
    plant(folder);
    ({ violations: found, circling } = await cruise(folder));
  });

  afterAll(() => rmSync(folder, { recursive: true }));

  it('two folders that import each other are found', () => {
    expect(circling).toEqual(expect.arrayContaining(['adapters/one', 'adapters/two']));
  });

  it.each(BREACHES)('%s fires for %s', (rule, path) => {
    const rules = found.filter(({ from }) => from === path).map((violation) => violation.rule.name);
    expect(rules).toContain(rule);
  });

  it.each(FINE)('nothing fires for %s', (path) => {
    expect(found.filter(({ from }) => from === path)).toEqual([]);
  });
});
