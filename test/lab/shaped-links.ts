/**
 * Workers behind links of a known bandwidth, on one machine. The program runs again in network, process and mount
 * namespaces of its own: whatever it makes there ends with it, however it ends, and no name of it is seen outside.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The variable that names the folder, set in the namespaces. */
const INSIDE = 'YARDMASTER_LAB_INSIDE';

/** What TCP over IP leaves of an Ethernet frame of 1 500 bytes, which is 14 bytes longer on the link. */
export const PAYLOAD_SHARE = 1448 / 1514;

/** Packets wait for a link for so long at most, as in the buffers of a switch; further ones are dropped. */
export const QUEUE_S = 0.005;
/** Bytes that pass at once after a pause. */
const BURST_BYTES = 16 * 1024;
/** How TCP reacts to a full link: as Linux does by default, whatever the default of this machine is. */
const CONGESTION_CONTROL = 'cubic';

/** The address of the scheduler, which has a link without limit. */
export const HUB = '10.0.0.1';

const PRIVATE = ['--net', '--pid', '--fork', '--kill-child', '--mount', '--mount-proc'];
const NEEDED = `This needs Linux with namespaces and the queue "tbf", and the programs ip and tc (package iproute2) and
unshare and nsenter (package util-linux); without the rights of root also user namespaces
(sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0).`;

/**
 * Runs the program again in namespaces, and ends with its exit code.
 * @returns there: a folder that is removed at the end. Here: undefined
 */
export async function enterNamespaces(): Promise<string | undefined> {
  const given = process.env[INSIDE];
  if (given !== undefined) return given;
  const flags = process.getuid?.() === 0 ? PRIVATE : ['--map-root-user', ...PRIVATE];
  const probe = [
    'mount -t tmpfs none /run && ip netns add probe && ip link add near type veth peer name far netns probe',
    'tc qdisc add dev near root tbf rate 1mbit burst 16k limit 64k',
  ].join(' && ');
  const { error, status, stderr } = spawnSync('unshare', [...flags, 'sh', '-c', probe], {
    encoding: 'utf8',
  });
  if (error !== undefined || status !== 0) {
    process.stderr.write(`no namespaces: ${(error?.message ?? stderr).trim()}\n${NEEDED}\n`);
    process.exitCode = 1;
    return undefined;
  }
  const folder = mkdtempSync(join(tmpdir(), 'yardmaster-lab-'));
  const command = [...flags, process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  const child = spawn('unshare', command, {
    stdio: 'inherit',
    env: { ...process.env, [INSIDE]: folder, YARDMASTER_HOME: folder },
  });
  // The kernel ends all processes of the namespaces with the first of them, and the namespaces with the last.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      process.exitCode = 130;
      child.kill('SIGKILL');
    });
  }
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve));
  rmSync(folder, { recursive: true, force: true });
  process.exitCode ??= code ?? 1;
  return undefined;
}

/** A network namespace with an address, behind a link. */
export interface Place {
  readonly name: string;
  readonly host: string;
  /** Program and arguments that run a command there. */
  readonly enter: readonly string[];
}

/** Makes namespaces whose links to a common bridge carry so many bits per second in each direction. */
export function makePlaces(count: number, bitsPerSecond: number): Place[] {
  run('mount -t tmpfs none /run');
  run('ip link set lo up');
  run('ip link add hub type bridge');
  run(`ip addr add ${HUB}/24 dev hub`);
  run('ip link set hub up');
  const queueBytes = Math.round(BURST_BYTES + (QUEUE_S * bitsPerSecond) / 8);
  const shape = `root tbf rate ${bitsPerSecond}bit burst ${BURST_BYTES} limit ${queueBytes}`;
  return Array.from({ length: count }, (_, index) => {
    const name = `w${index + 1}`;
    const host = `10.0.0.${index + 2}`;
    const enter = ['nsenter', `--net=/run/netns/${name}`];
    const there = enter.join(' ');
    run(`ip netns add ${name}`);
    run(`ip link add ${name} type veth peer name uplink netns ${name}`);
    run(`ip link set ${name} master hub up`);
    for (const link of ['lo', 'uplink']) run(`${there} ip link set ${link} up`);
    run(`${there} ip addr add ${host}/24 dev uplink`);
    run(
      `${there} ip route change 10.0.0.0/24 dev uplink src ${host} congctl ${CONGESTION_CONTROL}`,
    );
    run(`tc qdisc add dev ${name} ${shape}`);
    run(`${there} tc qdisc add dev uplink ${shape}`);
    return { name, host, enter };
  });
}

function run(line: string): void {
  const [program = '', ...args] = line.split(' ');
  const { error, status, stderr } = spawnSync(program, args, {
    encoding: 'utf8',
  });
  if (error !== undefined || status !== 0) {
    throw new Error(`"${line}" failed: ${error?.message ?? stderr}`);
  }
}
