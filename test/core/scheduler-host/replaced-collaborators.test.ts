import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { definePlugin } from '../../../core/api/index.ts';
import { byFactory, type Provider } from '../../../core/api/token.ts';
import { Delivery } from '../../../core/scheduler-host/delivery.ts';
import { EventLog } from '../../../core/scheduler-host/event-log.ts';
import { SlowStimulusMonitor } from '../../../core/scheduler-host/scheduler-host.ts';
import { StimulusQueue } from '../../../core/scheduler-host/stimulus-queue.ts';
import { tokens } from '../../../adapters/app/entries/plugin.ts';
import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { CountingQueue } from './counting-queue.ts';
import { TestHost, startHost } from '../../kit/test-host.ts';

const document = readFileSync(new URL('../../../docs/plugins.md', import.meta.url), 'utf8');

describe('a program', () => {
  it('replaces the queue of stimuli by one that counts', async () => {
    const queue = new CountingQueue();
    const host = await startHost({}, { provide: [{ token: StimulusQueue, useValue: queue }] });
    await host.worker('inmemory://w1');
    await host.client();
    expect(Object.fromEntries(queue.counts)).toEqual({
      'register-worker': 1,
      'register-client': 1,
    });
  });

  it('replaces it in a local cluster, too', async () => {
    const queue = new CountingQueue();
    const cluster = await LocalCluster.start({
      mode: 'inline',
      workers: 1,
      provide: [{ token: StimulusQueue, useValue: queue }],
    });
    await cluster.close();
    expect(queue.counts.get('register-worker')).toBe(1);
  });

  it('replaces a class by one that extends it and inherits its constructor', async () => {
    const sent: string[] = [];
    class RecordingDelivery extends Delivery {
      override deliver(...[outbox, cause]: Parameters<Delivery['deliver']>): void {
        for (const { message } of outbox.toWorkers) sent.push(message.op);
        super.deliver(outbox, cause);
      }
    }
    const host = await startHost(
      {},
      { provide: [{ token: Delivery, useClass: RecordingDelivery }] },
    );
    const worker = await host.worker('inmemory://w1');
    const client = await host.client();
    const tasks = [{ key: 'x', dependencies: [], runSpec: 'compute' }];
    await client.send({ op: 'update-graph', tasks, keys: ['x'] });
    expect([sent, worker.ops()]).toEqual([['compute-task'], ['compute-task']]);
  });

  it('replaces a class by one that lists the tokens of its parameters', async () => {
    class QuietMonitor {
      static readonly inject = [tokens.CLOCK, EventLog];
      constructor(
        readonly clock: { nowMs(): number },
        readonly log: EventLog,
      ) {
        made.push(typeof clock.nowMs, log.constructor.name);
      }
    }
    const made: string[] = [];
    const host = await startHost(
      {},
      { provide: [{ token: SlowStimulusMonitor, useClass: QuietMonitor }] },
    );
    await host.client();
    expect(made).toEqual(['function', 'EventLog']);
  });

  it('makes a collaborator by a function that is called once', async () => {
    let count = 0;
    const log = byFactory(EventLog, (services) => {
      count++;
      return new EventLog(services.get(tokens.CONFIG));
    });
    await startHost({}, { provide: [log] });
    expect(count).toBe(1);
  });
});

describe('a plugin of the configuration', () => {
  const counting = (name: string) =>
    definePlugin({
      name,
      apiVersion: 1,
      provide: [{ token: StimulusQueue, useClass: CountingQueue }],
      setup: () => undefined,
    });

  it('replaces a collaborator', async () => {
    const made: unknown[] = [];
    class Monitor extends SlowStimulusMonitor {
      constructor(...collaborators: ConstructorParameters<typeof SlowStimulusMonitor>) {
        super(...collaborators);
        made.push(this);
      }
    }
    const plugin = definePlugin({
      name: 'monitor',
      apiVersion: 1,
      provide: [{ token: SlowStimulusMonitor, useClass: Monitor }],
      setup: () => undefined,
    });
    const host = await startHost({ plugins: [{ use: plugin }] });
    await host.client();
    expect(made).toHaveLength(1);
  });

  it('cannot replace what another plugin replaces', async () => {
    const plugins = [{ use: counting('first') }, { use: counting('second') }];
    await expect(TestHost.start({ config: { scheduler: { plugins } } })).rejects.toMatchObject({
      code: 'ERR_PROVIDER',
      message:
        'the collaborator "StimulusQueue" is replaced by the plugins "first" and "second"; remove one of both',
    });
  });

  it('cannot be added at run time when it replaces a collaborator', async () => {
    const host = await startHost();
    await expect(host.scheduler.addPlugin(counting('late'))).rejects.toMatchObject({
      code: 'ERR_PROVIDER',
    });
  });
});

describe('a wrong provider is refused:', () => {
  const refused = (provider: unknown, message: RegExp) =>
    expect(startHost({}, { provide: [provider as Provider] })).rejects.toMatchObject({
      code: 'ERR_PROVIDER',
      message: expect.stringMatching(message) as string,
    });

  it('an unknown token', () =>
    refused(
      { token: { id: Symbol('journl') }, useValue: 1 },
      /"journl" does not exist; did you mean "journal"\?/,
    ));
  it('something that is no class', () =>
    refused({ token: Delivery, useClass: () => 1 }, /useClass takes a class/));
  it('a class whose parameters name no services', () =>
    refused(
      {
        token: SlowStimulusMonitor,
        useClass: class Loud {
          constructor(readonly volume: number) {}
        },
      },
      /Loud: its constructor has 1 parameters and names services for 0/,
    ));
  it('a factory that returns a promise', () =>
    refused(
      byFactory(EventLog, () => Promise.resolve({}) as never),
      /^the collaborator "EventLog" cannot be used: useFactory returned a promise, and/,
    ));
  it('a value that is a promise', () =>
    refused({ token: EventLog, useValue: Promise.resolve() }, /useValue is a promise/));
  it('a value that is undefined', () =>
    refused({ token: EventLog, useValue: undefined }, /useValue is nothing/));
  it('an undefined token', () =>
    refused(
      { token: undefined, useValue: 1 },
      /a provider has no token, but nothing; is the import/,
    ));
  it('an undefined token of a parameter', () =>
    refused(
      {
        token: EventLog,
        useClass: class Own {
          static readonly inject = [undefined];
          constructor(readonly log: unknown) {}
        },
      },
      /parameter 1 of Own has no token/,
    ));
  it('one that asks for an undefined token', () =>
    refused(
      byFactory(EventLog, (services) => services.get(undefined as never)),
      /what was asked for has no token/,
    ));
  it('two for one token', async () => {
    const queue = { token: StimulusQueue, useClass: CountingQueue };
    await expect(startHost({}, { provide: [queue, queue] })).rejects.toMatchObject({
      code: 'ERR_PROVIDER',
      message: 'the collaborator "StimulusQueue" is provided twice; remove one of both',
    });
    const plugin = definePlugin({
      name: 'twice',
      apiVersion: 1,
      provide: [queue, queue],
      setup: () => undefined,
    });
    const config = { scheduler: { plugins: [{ use: plugin }] } };
    await expect(TestHost.start({ config })).rejects.toMatchObject({
      message: expect.stringContaining('is replaced twice by the plugin "twice"') as string,
    });
  });
  it.each<[how: string, provider: Provider]>([
    ['a factory', byFactory(EventLog, (services) => services.get(Delivery) as never)],
    [
      'a class',
      {
        token: EventLog,
        useClass: class Own {
          static readonly inject = [Delivery];
          constructor(readonly delivery: unknown) {}
        },
      },
    ],
  ])('%s that needs what needs it, in one short line', async (_how, provider) => {
    const needsLog = byFactory(Delivery, (services) => services.get(EventLog) as never);
    const error = (await startHost({}, { provide: [provider, needsLog] }).catch(
      (thrown: unknown) => thrown,
    )) as Error;
    expect(error.message).toMatch(/^the collaborator "[A-Za-z]+" needs itself to be made: /);
    expect(error.message).toMatch(
      /(EventLog → Delivery → EventLog|Delivery → EventLog → Delivery)/,
    );
    expect(error.message.length).toBeLessThan(300);
  });
  it('a class whose constructor throws, with its own words', () =>
    refused(
      {
        token: EventLog,
        useClass: class Own {
          constructor() {
            throw new Error('no disk');
          }
        },
      },
      /^the collaborator "EventLog" cannot be made: no disk$/,
    ));
  it('one without a class, a function or a value', () =>
    refused({ token: Delivery }, /needs useClass, useFactory or useValue/));
});

it('the guide names every token', () => {
  expect(Object.keys(tokens).filter((name) => !document.includes(`\`${name}\``))).toEqual([]);
});
