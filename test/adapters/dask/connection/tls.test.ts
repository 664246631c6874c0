import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { afterAll, afterEach, describe, expect, test } from 'vitest';

import { SystemClock } from '../../../../adapters/clocks/index.ts';
import type { Opaque } from '../../../../adapters/dask/wire/codec.ts';
import { Comm } from '../../../../adapters/dask/wire/comm.ts';
import { DaskListener } from '../../../../adapters/dask/wire/listener.ts';
import type { TlsCredentials } from '../../../../adapters/dask/wire/sockets.ts';
import { loadCredentials, readDaskTlsConfig } from '../../../../adapters/dask/tls-config.ts';
import { type Certificates, hasOpenssl, makeCertificates } from '../certificates.ts';
import { findDaskPython } from '../pythons.ts';

const PEER = fileURLToPath(new URL('../fixtures/peer.py', import.meta.url));
const daskPython = findDaskPython()?.command;
const clock = new SystemClock();
const folder = mkdtempSync(join(tmpdir(), 'yardmaster-tls-'));
const listeners: DaskListener[] = [];

afterEach(async () => {
  for (const listener of listeners.splice(0)) await listener.close();
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

const OURS: Certificates | undefined = hasOpenssl ? makeCertificates(folder, 'ours') : undefined;

function credentials({ ca, cert, key }: Certificates): TlsCredentials {
  return loadCredentials({ caFile: ca, cert, key })!;
}

describe.skipIf(OURS === undefined)('tls', () => {
  const tls = OURS === undefined ? undefined! : credentials(OURS);

  async function listen(
    onComm: (comm: Comm) => void,
    onRefused?: (error: Error) => void,
  ): Promise<string> {
    const options = { clock, tls, onRefused };
    const listener = await DaskListener.listen('tls://127.0.0.1:0', options, (comm) => {
      comm.trust();
      onComm(comm);
    });
    listeners.push(listener);
    return listener.address;
  }

  test('certificates that are replaced count for the next connection', async () => {
    const [first, second] = [makeCertificates(folder, 'first'), makeCertificates(folder, 'second')];
    const used = { ca: '', cert: '', key: '' };
    const put = (from: Certificates): void => {
      for (const what of ['ca', 'cert', 'key'] as const) {
        used[what] = join(folder, `used-${what}.pem`);
        copyFileSync(from[what], used[what]);
      }
    };
    put(first);
    const renewed = credentials(used);
    const listener = await DaskListener.listen(
      'tls://127.0.0.1:0',
      { clock, tls: renewed },
      (comm) => {
        const echo = comm.read().then((message) => comm.write(message));
        echo.catch(() => undefined); // One of them says nothing.
      },
    );
    listeners.push(listener);
    const speaks = async (certificates: Certificates): Promise<void> => {
      const comm = await Comm.connect(listener.address, { clock, tls: credentials(certificates) });
      await comm.call('x', {});
      await comm.close();
    };
    await speaks(first);
    put(second);
    await speaks(second);
    await expect(speaks(first)).rejects.toThrow();
    // The same files are read for connections to others.
    const comm = await Comm.connect(listener.address, { clock, tls: renewed });
    await comm.close();
  });

  test('a caller that breaks the handshake of TLS is disconnected', async () => {
    const refused: Error[] = [];
    const address = await listen(
      () => undefined,
      (error) => refused.push(error),
    );
    const socket = connect(Number(new URL(address).port), '127.0.0.1');
    socket.on('error', () => undefined).resume();
    socket.write('GET / HTTP/1.1\r\n\r\n');
    await new Promise((resolve) => socket.once('close', resolve));
    expect(refused[0]?.message).toContain('failed to encrypt');
  });

  test('callers beyond the limit of connections are closed at once, and one that says nothing after a while', async () => {
    const options = { clock, tls, connectionsMax: 2 };
    const listener = await DaskListener.listen('tls://127.0.0.1:0', options, () => undefined);
    listeners.push(listener);
    const port = Number(new URL(listener.address).port);
    const closed: number[] = [];
    const sockets = [0, 1, 2].map((index) => {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined).on('close', () => closed.push(index));
      return socket.resume();
    });
    await expect.poll(() => closed.length).toBe(1);
    // None of them begins the handshake of TLS, for which there are five seconds.
    await expect.poll(() => closed.length).toBe(3);
    for (const socket of sockets) socket.destroy();
  });

  test('both sides speak when one authority signed for both', async () => {
    const address = await listen((comm) => {
      void comm.read().then((message) => comm.write(message));
    });
    expect(address).toMatch(/^tls:/);
    const comm = await Comm.connect(address, { clock, tls });
    expect(await comm.call('x', { text: 'y'.repeat(1_000_000) })).toMatchObject({ op: 'x' });
    expect(comm.localAddress).toMatch(/^tls:/);
  });

  test('a caller with certificates of another authority is refused on both sides', async () => {
    const stranger = credentials(makeCertificates(folder, 'stranger'));
    let refuse!: (error: Error) => void;
    const refused = new Promise<Error>((resolve) => (refuse = resolve));
    const address = await listen(() => expect.unreachable(), refuse);
    await expect(Comm.connect(address, { clock, tls: stranger })).rejects.toMatchObject({
      code: 'ERR_ACCESS',
    });
    expect(await refused).toMatchObject({ code: 'ERR_PROTOCOL' });
  });

  test('a caller without encryption is refused', async () => {
    let refuse!: (error: Error) => void;
    const refused = new Promise<Error>((resolve) => (refuse = resolve));
    const address = await listen(() => expect.unreachable(), refuse);
    const plain = Comm.connect(address.replace('tls', 'tcp'), { clock, handshakeTimeoutMs: 200 });
    await expect(plain).rejects.toThrow();
    void refused;
  });

  test('no side listens or connects without certificates', async () => {
    await expect(
      DaskListener.listen('tls://127.0.0.1:0', { clock }, () => undefined),
    ).rejects.toMatchObject({ code: 'ERR_CONFIG' });
    await expect(Comm.connect('tls://127.0.0.1:1', { clock })).rejects.toMatchObject({
      code: 'ERR_ACCESS',
    });
  });

  test.skipIf(daskPython === undefined)(
    'a real Dask process calls and is called over tls',
    async () => {
      let got: Promise<unknown> | undefined;
      const address = await listen((comm) => {
        got = serve(comm);
      });
      const { ca, cert, key } = OURS!;
      await promisify(execFile)(daskPython!, [PEER, address, ca, cert, key]);
      expect(await got).toMatchObject({ op: 'hello' });
    },
  );

  async function serve(comm: Comm): Promise<unknown> {
    for (;;) {
      const message = (await comm.read()) as { op: string; address: string };
      if (message.op === 'echo') comm.write(message);
      else if (message.op === 'errors') comm.write([]);
      else {
        const peer = await Comm.connect(message.address, { clock, tls });
        const answer = (await peer.call('hello')) as { got: unknown; large: Opaque };
        await peer.close();
        return answer.got;
      }
    }
  }
});

describe("Dask's configuration of certificates", () => {
  test('is read from its files, and the environment wins', () => {
    const config = join(folder, 'config');
    mkdirSync(config, { recursive: true });
    writeFileSync(
      join(config, 'security.yaml'),
      'distributed:\n  comm:\n    require-encryption: true\n    tls:\n      ca-file: /a/ca.pem\n      min-version: 1.3\n      scheduler: {cert: /a/cert.pem, key: null}\n',
    );
    writeFileSync(join(config, 'other.yaml'), 'array: {chunk-size: 1}\n');
    expect(
      readDaskTlsConfig({
        DASK_CONFIG: config,
        DASK_DISTRIBUTED__COMM__TLS__SCHEDULER__CERT: '/b/cert.pem',
      }),
    ).toEqual({
      files: {
        caFile: '/a/ca.pem',
        cert: '/b/cert.pem',
        key: undefined,
        minVersion: '1.3',
      },
      requireEncryption: true,
    });
  });

  test('says which part is missing or unreadable', () => {
    expect(loadCredentials({})).toBeUndefined();
    expect(() => loadCredentials({ caFile: '/ca.pem' })).toThrow('tls.scheduler.cert is missing');
    expect(() => loadCredentials({ cert: '/cert.pem' })).toThrow('tls.ca-file is missing');
    expect(() => loadCredentials({ caFile: '/no/ca.pem', cert: '/no/c.pem' })).toThrow(
      'tls.ca-file names /no/ca.pem',
    );
    expect(() => loadCredentials({ caFile: '/a', cert: '/b', minVersion: '1.1' })).toThrow(
      'it can be 1.2 or 1.3',
    );
  });

  test('a file that is not YAML is named', () => {
    const file = join(folder, 'broken.yaml');
    writeFileSync(file, 'a: [');
    expect(() => readDaskTlsConfig({ DASK_CONFIG: file })).toThrow(file);
  });

  test.skipIf(OURS === undefined)('one file may hold certificate and key', () => {
    const both = join(folder, 'both.pem');
    writeFileSync(both, readFileSync(OURS!.cert, 'utf8') + readFileSync(OURS!.key, 'utf8'));
    expect(loadCredentials({ caFile: OURS!.ca, cert: both })?.current.key).toContain('PRIVATE KEY');
  });
});
