import { describe, expect, it } from 'vitest';
import {
  defineWorkerPlugin,
  type WorkerPluginDefinition,
} from '../../../core/api/local-plugins.ts';
import { DataServer } from '../../../core/worker-host/data-server.ts';
import { WorkerInspection } from '../../../core/worker-host/worker-inspection.ts';
import { VirtualClock } from '../../../adapters/clocks/index.ts';
import { ModuleFiles } from '../../../core/plugin-host/module-files.ts';
import { PluginResolver } from '../../../core/plugin-host/plugin-resolver.ts';
import { type LocalEntry, LocalPlugins } from '../../../core/plugin-host/plugin-host.ts';
import { MemoryLog } from '../../bad-input/memory-log.ts';
import { Bench } from '../worker/hand-scheduler.ts';

const made: string[] = [];

class CountingServer extends DataServer {
  constructor(...collaborators: ConstructorParameters<typeof DataServer>) {
    super(...collaborators);
    made.push('server');
  }
}

class CountingInspection extends WorkerInspection {
  constructor(...collaborators: ConstructorParameters<typeof WorkerInspection>) {
    super(...collaborators);
    made.push('inspection');
  }
}

const counting = (name: string): WorkerPluginDefinition =>
  defineWorkerPlugin({
    name,
    apiVersion: 1,
    provide: [{ token: WorkerInspection, useClass: CountingInspection }],
    setup: () => undefined,
  });

async function start(
  provide: readonly object[],
  plugins: readonly LocalEntry[] = [],
): Promise<string[]> {
  made.length = 0;
  const world = await new Bench().listen();
  const worker = await world.startWorker('alice', { provide: provide as never, plugins });
  const reports = await world.send(worker, world.compute('x', 'add', [1, 2]));
  expect(reports.map(({ op }) => op)).toContain('task-finished');
  await world.settle(worker.close());
  return made;
}

describe('a collaborator of a worker', () => {
  it('is replaced by a class that the program provides', async () => {
    const provider = { token: DataServer, useClass: CountingServer };
    expect(await start([provider])).toEqual(['server']);
  });

  it('is replaced by a plugin of the configuration', async () => {
    expect(await start([], [{ use: counting('counting') }])).toEqual(['inspection']);
  });

  it('cannot be replaced by two plugins', async () => {
    const plugins = [{ use: counting('one') }, { use: counting('two') }];
    await expect(start([], plugins)).rejects.toMatchObject({
      code: 'ERR_PROVIDER',
      message: expect.stringContaining('is replaced by the plugins "one" and "two"') as string,
    });
  });

  it('cannot be replaced by a plugin that comes while the worker runs', async () => {
    const plugins = new LocalPlugins({
      kind: 'worker-plugin',
      resolver: new PluginResolver({}, new ModuleFiles('.')),
      clock: new VirtualClock(),
      log: new MemoryLog(),
      context: (base) => base,
      onCrash: () => undefined,
    });
    await expect(plugins.add({ use: counting('late') })).rejects.toMatchObject({
      code: 'ERR_PROVIDER',
      message: expect.stringContaining('while the worker runs') as string,
    });
  });

  it('has a token that exists, or the nearest one is named', async () => {
    const provider = { token: { id: Symbol('yardmaster:WorkerMemry') }, useValue: 1 };
    await expect(start([provider])).rejects.toThrow('did you mean "WorkerMemory"?');
  });
});
