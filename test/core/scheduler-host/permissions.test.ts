import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { definePlugin, OPERATIONS, type PeerRole } from '../../../core/api/index.ts';
import { type RawPeer, TestHost } from '../../kit/test-host.ts';

const counter = definePlugin({
  name: 'counter',
  apiVersion: 1,
  setup(context) {
    context.command('reset', () => 0);
    context.command('count', { access: 'viewer' }, () => 1);
    context.command('add', { access: 'client' }, () => 2);
    context.command('report', { access: 'worker' }, (_, { worker }) => worker);
  },
});

let host: TestHost;

beforeEach(async () => {
  host = await TestHost.start();
  await host.scheduler.addPlugin(counter);
});

afterEach(() => host.close());

/** A registered peer with the key of a role. */
async function peerWith(key: PeerRole): Promise<RawPeer> {
  host.transport.key = key;
  return key === 'worker' ? host.worker('inmemory://w') : host.client(`c-${key}`);
}

async function isPermitted(key: PeerRole, method: string, parameters: object): Promise<boolean> {
  const peer = await peerWith(key);
  try {
    await peer.request(method, { ...parameters });
    return true;
  } catch (error) {
    const { code, message } = error as { readonly code: string; readonly message: string };
    if (code !== 'ERR_ACCESS') return true; // It was about to be done.
    expect(message).toContain(`the key of a ${key} does not permit to`);
    return false;
  } finally {
    await peer.close();
  }
}

/** The roles whose key permits a request. */
async function permitting(method: string, parameters: object = {}): Promise<PeerRole[]> {
  const permitted: PeerRole[] = [];
  for (const key of ['worker', 'viewer', 'client', 'admin'] as const) {
    if (await isPermitted(key, method, parameters)) permitted.push(key);
  }
  return permitted;
}

describe('a command', () => {
  it.each([
    ['identity', ['viewer', 'client', 'admin']],
    ['why', ['viewer', 'client', 'admin']],
    ['counter.count', ['viewer', 'client', 'admin']],
    ['broadcast', ['client', 'admin']],
    ['proxy', ['client', 'admin']],
    ['reserve-data', ['client', 'admin']],
    ['coordination.setVariable', ['client', 'admin']],
    ['report.start', ['client', 'admin']],
    ['counter.add', ['client', 'admin']],
    ['restart', ['admin']],
    ['start-recording', ['admin']],
    ['stop-recording', ['admin']],
    ['amm.stop', ['admin']],
    ['amm.retireWorkers', ['admin']],
    ['work-stealing.stop', ['admin']],
    ['amm.retireSelf', ['worker', 'admin']],
    ['counter.report', ['worker', 'admin']],
  ])('"%s" is permitted by the key of %j', async (command, roles) => {
    // A parameter that it does not have: nothing is done where it is permitted.
    const parameters = command.startsWith('counter') ? {} : { unheardOf: 1 };
    expect(await permitting('command', { command, parameters })).toEqual(roles);
  });

  it('of a plugin that names no access is for admins', async () => {
    expect(await permitting('command', { command: 'counter.reset' })).toEqual(['admin']);
  });

  it('that does not exist is no secret for those who may look', async () => {
    const viewer = await peerWith('viewer');
    await expect(viewer.request('command', { command: 'identty' })).rejects.toMatchObject({
      message: expect.stringContaining('did you mean "identity"') as string,
    });
  });
});

describe('a request', () => {
  it.each([
    ['who-has', { keys: ['x'] }, ['viewer', 'client', 'admin']],
    ['gather', { keys: ['x'] }, ['client', 'admin']],
    ['get-part', { handle: 1, nbytes: 1 }, ['client', 'admin']],
    ['ping', {}, ['worker', 'viewer', 'client', 'admin']],
  ])('"%s" is permitted by the keys that may see what it answers', async (method, asked, roles) => {
    expect(await permitting(method, asked)).toEqual(roles);
  });
});

it('a worker that closes takes itself out of service, and is not told who else is there', async () => {
  const worker = await peerWith('worker');
  const command = 'amm.retireSelf';
  const retiring = worker.channel.request('command', { command });
  await host.clock.advanceAsync(10_000);
  expect(await retiring).toMatchObject({
    retired: [{ address: 'inmemory://w' }],
    kept: [],
  });
  const admin = await peerWith('admin');
  await expect(admin.request('command', { command })).rejects.toThrow('retireWorkers takes');
});

describe('the key of a viewer', () => {
  it('permits these messages', () => {
    const permitted = Object.entries(OPERATIONS).filter(([, { sender }]) => sender === 'viewer');
    expect(permitted.map(([op]) => op)).toEqual(['heartbeat-client', 'close-client']);
  });

  it('permits signs of life and a leave, and no other message', async () => {
    const viewer = await peerWith('viewer');
    await viewer.send({ op: 'heartbeat-client' }, { op: 'close-client' });
    expect(viewer.closedWith).toBeUndefined();
    await viewer.send({ op: 'client-desires-keys', keys: ['x'] });
    expect(host.log.messages.join()).toContain('the key of a viewer does not permit to send');
    expect(viewer.closedWith).toBeDefined();
  });
});
