/** Who may import whom. `test/tidy/boundaries.test.ts` plants a breach of each rule. */
const no = (name, from, to, comment) => ({
  name,
  comment,
  severity: 'error',
  from: { path: from },
  to: typeof to === 'string' ? { path: to } : to,
});

const SANS_IO = '^core/(kernel|worker|state|messages|util)/';

module.exports = {
  forbidden: [
    no(
      'kernel-is-sans-io',
      SANS_IO,
      { pathNot: '^core/(kernel|worker|state|messages|util|api)/' },
      'The kernel is a function: no npm package, no node:*, no host.',
    ),
    no(
      'state-below-kernel',
      '^core/(state|messages|util)/',
      '^core/(kernel|worker|api)/',
      'State and messages know nothing of what acts on them.',
    ),
    no(
      'api-sees-state',
      '^core/api/',
      { pathNot: '^core/(api|state|messages|util)/' },
      'The contract for authors names no machinery.',
    ),
    no(
      'shared-sees-api',
      '^core/shared/',
      { pathNot: '^core/(shared|api|messages|util)/|node_modules/fastest-levenshtein/' },
      'What hosts and our own extensions share is built on the contract alone.',
    ),
    no(
      'log-sees-kernel',
      '^core/log/',
      { pathNot: '^core/(log|kernel|state|messages|util|api)/' },
      'A recording is of the function, not of the hosts around it.',
    ),
    no(
      'core-stays-inside',
      '^core/',
      '^(plugins|policies|adapters|test)/',
      'The core knows none of its extensions.',
    ),
    no(
      'hosts-apart',
      '^core/(host|plugin-host)/',
      '^core/(scheduler-host|worker-host)/',
      'What both hosts share knows neither.',
    ),
    no(
      'scheduler-host-is-no-worker',
      '^core/scheduler-host/',
      '^core/worker-host/',
      'The two hosts meet in messages only.',
    ),
    no(
      'worker-host-is-no-scheduler',
      '^core/worker-host/',
      '^core/scheduler-host/',
      'The two hosts meet in messages only.',
    ),
    no(
      'only-injection-injects',
      '^(?!core/plugin-host/injection\\.ts).+',
      '(^|/)node_modules/(tsyringe|reflect-metadata)/',
      'One file knows the injection container.',
    ),
    no(
      'policies-see-api',
      '^policies/',
      { pathNot: '^(core/(api|util)|policies)/' },
      'A policy is a pure decision.',
    ),
    no(
      'plugins-see-api',
      '^plugins/',
      { pathNot: '^(core/(api|shared|util)|plugins|policies)/' },
      'A plugin of our own sees the contract, and what is shared without a promise to authors.',
    ),
    no(
      'adapters-see-api',
      '^adapters/(?!app/|cli/|testing/|simulator/|playground/|stores/open-result-store|transports/open-transports)',
      '^(plugins|policies|test|core/(?!(api|shared|util)/))',
      'An adapter touches the world, not the machinery.',
    ),
    no(
      'ways-below-engines',
      '^adapters/(transports|codecs|executors|stores|clocks|tasks)/',
      '^adapters/(client|app|cli|dask|mars|nanny|testing)/',
      'What carries messages and runs tasks knows nothing of what is built on it.',
    ),
    no(
      'dask-is-a-guest',
      '^adapters/dask/',
      '^adapters/(?!(dask|dashboard|codecs|transports|tasks|log)/)',
      'Dask uses sockets, codecs and calls of tasks, and shows its pages beside ours: no engine.',
    ),
    no(
      'dashboard-is-a-guest',
      '^adapters/dashboard/',
      '^adapters/(?!(dashboard|report|transports)/)',
      'The dashboard serves what the contract shows, and reports.',
    ),
    no(
      'adapters-below-app',
      '^adapters/(?!app/|cli/|testing/|simulator/|playground/)',
      '^adapters/(app|cli|testing)/',
      'Only the programs know the composition of all parts.',
    ),
    no(
      'nothing-imports-test',
      '^(core|plugins|policies|adapters)/',
      '^test/',
      'Product code does not know its tests.',
    ),
    {
      name: 'no-circular',
      comment: 'No circle of files that run. Types may refer to each other.',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
  ],
  options: {
    doNotFollow: { path: '(node_modules|^dist)' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'types', 'node', 'default'],
    },
  },
};
