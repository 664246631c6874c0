import { YardmasterError } from '../../../core/api/index.ts';

/** Version of the framing: goes up when peers of before could not read it. */
const VERSION = '1';
const NAME = 'yardmaster-tcp/';

/** The first bytes on a connection, from both sides: a line of ASCII. */
export const PREAMBLE: Uint8Array = new TextEncoder().encode(`${NAME}${VERSION}\n`);

/** Longest line that is read to find out which version a peer speaks. */
const PREAMBLE_BYTES_MAX = NAME.length + 16;

/** First bytes by which other protocols are known. */
const OTHER_PROTOCOLS: readonly { readonly name: string; readonly starts: readonly string[] }[] = [
  {
    name: 'HTTP',
    starts: [
      ...['GET ', 'POST ', 'HEAD ', 'PUT ', 'DELETE ', 'OPTIONS ', 'PATCH ', 'CONNECT ', 'TRACE '],
      ...['HTTP/', 'PRI * HTTP/2'],
    ],
  },
  { name: 'TLS', starts: ['\x16\x03', '\x15\x03'] },
  { name: 'SSH', starts: ['SSH-'] },
  { name: 'Redis', starts: ['*1\r\n', '*2\r\n', '-ERR ', '+OK\r\n', '+PONG'] },
  { name: 'the PROXY protocol', starts: ['PROXY ', '\r\n\r\n\0\r\nQUIT\n'] },
  { name: 'SMTP or FTP', starts: ['220 ', '220-', 'EHLO ', 'HELO '] },
];

/**
 * Checks the beginning of what a peer sends.
 *
 * @param received - all bytes so far
 * @returns the length of the preamble; undefined while there could be more of it to come
 * @throws YardmasterError `ERR_PROTOCOL` at the first byte that does not fit, naming what the peer
 *   seems to speak
 */
export function checkPreamble(received: Uint8Array): number | undefined {
  const nbytes = Math.min(received.length, PREAMBLE.length);
  let same = 0;
  while (same < nbytes && received[same] === PREAMBLE[same]) same++;
  if (same === PREAMBLE.length) return same;
  if (same === received.length) return undefined;
  const text = latin1(received.subarray(0, PREAMBLE_BYTES_MAX));
  if (same < NAME.length) throw otherProtocol(text);
  checkVersion(text);
  return undefined;
}

/** In the first message of Dask there are one or two. */
const DASK_FRAMES_MAX = 16;

/** Whether these first bytes of a peer look like Dask's protocol. */
export function seemsDask(firstBytes: Uint8Array): boolean {
  return isDask(latin1(firstBytes.subarray(0, PREAMBLE_BYTES_MAX)));
}

/**
 * A message of Dask begins with its length, less than 64 KiB for the first one, and the number of its
 * frames, which are few: little-endian integers of 64 bits.
 */
function isDask(text: string): boolean {
  const codes = Array.from(text, (character) => character.charCodeAt(0));
  const [count = 1] = codes.slice(8);
  if (codes.length < 8 || count < 1 || count > DASK_FRAMES_MAX) return false;
  return codes.every((code, at) => code === 0 || at < 2 || at === 8 || at >= 16);
}

/** The error that names the protocol which these first bytes look like. */
function otherProtocol(text: string): YardmasterError {
  const known = isDask(text)
    ? 'Dask'
    : OTHER_PROTOCOLS.find(({ starts }) =>
        starts.some((start) => text.startsWith(start) || (text !== '' && start.startsWith(text))),
      )?.name;
  const seen = JSON.stringify(text.slice(0, 16));
  return new YardmasterError(
    'ERR_PROTOCOL',
    known === undefined
      ? `the peer does not speak the protocol of Yardmaster: its first bytes are ${seen}; check host and port`
      : `the peer seems to speak ${known}, not the protocol of Yardmaster: its first bytes are ${seen}; ${adviceFor(known)}`,
    { firstBytes: text.slice(0, 16), seems: known },
  );
}

/** The text begins with our name, but the version is not ours. Waits for its end. */
function checkVersion(text: string): void {
  const end = text.indexOf('\n');
  if (end === -1 && text.length < PREAMBLE_BYTES_MAX) return;
  const version = text.slice(NAME.length, end === -1 ? undefined : end);
  throw new YardmasterError(
    'ERR_PROTOCOL',
    `the peer speaks version ${JSON.stringify(version)} of the protocol, this side version "${VERSION}"; run the same version of Yardmaster on both sides`,
    { version, expected: VERSION },
  );
}

function adviceFor(protocol: string): string {
  switch (protocol) {
    case 'HTTP':
      return 'there is no web page on this port';
    case 'TLS':
      return 'use tls:// on both sides, or tcp:// on both sides';
    case 'Dask':
      return 'use the address at which its process speaks the protocol of Yardmaster; peers of Dask themselves connect to the address that the plugin "dask" opens';
    default:
      return 'check host and port';
  }
}

function latin1(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}
