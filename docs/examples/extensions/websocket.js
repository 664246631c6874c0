import { defineTransport, MsgpackCodec, YardmasterError } from 'yardmaster/transport';
import { WebSocket, WebSocketServer } from 'ws';

// A transport over WebSockets, for peers behind proxies that pass nothing but HTTP: `ws://host:port`.
// Each frame is an array of messages in msgpack; an empty one says goodbye. Whoever can connect can run code on the
// workers: listen on the loopback, or behind a proxy that authenticates.

const PROTOCOL = 'yardmaster.1';
/** The header of a msgpack array: one byte, and the number of items. */
const ARRAY_32 = 0xdd;
const HEAD_BYTES = 5;
/** `drained` waits while more than this is buffered; what is sent in one turn leaves in frames of about this size. */
const HIGH_WATER_BYTES = 2 ** 20;
const GOODBYE = Buffer.alloc(0);

class WebSocketTransport {
  scheme = 'ws';

  constructor(clock, { frameBytesMax, connectTimeoutMs, closeTimeoutMs }) {
    this.connectTimeoutMs = connectTimeoutMs;
    this.services = { clock, closeTimeoutMs, codec: new MsgpackCodec(frameBytesMax) };
  }

  get socketOptions() {
    const { frameBytesMax } = this.services.codec;
    return { maxPayload: frameBytesMax + HEAD_BYTES, perMessageDeflate: false };
  }

  async listen(address, accept) {
    const { hostname, port } = parse(address);
    const server = new WebSocketServer({
      ...this.socketOptions,
      host: hostname === 'local' ? '127.0.0.1' : hostname,
      port: Number(port),
      handleProtocols: (offered) => offered.has(PROTOCOL) && PROTOCOL,
      verifyClient: ({ req }) => req.headers['sec-websocket-protocol'] === PROTOCOL,
    });
    await new Promise((resolve, reject) => {
      server.once('error', (cause) => reject(connectError(address, cause)));
      server.once('listening', resolve);
    });
    const bound = `ws://${hostname === 'local' ? '127.0.0.1' : hostname}:${server.address().port}`;
    server.on('error', () => undefined); // Of one connection that is not accepted.
    server.on('connection', (socket, { socket: { remoteAddress, remotePort } }) => {
      const peer = `ws://${remoteAddress}:${remotePort}`;
      const connection = new WebSocketConnection(socket, peer, this.services);
      connection.attach(accept);
    });
    return {
      address: bound,
      messageBytesMax: this.services.codec.frameBytesMax,
      close: async () => void server.close(),
    };
  }

  async connect(address, open, { timeoutMs = this.connectTimeoutMs } = {}) {
    const { hostname, port } = parse(address);
    const host = hostname === 'local' ? '127.0.0.1' : hostname;
    const socket = new WebSocket(`ws://${host}:${port}`, PROTOCOL, this.socketOptions);
    const { clock } = this.services;
    return new Promise((resolve, reject) => {
      const fail = (cause) => {
        timer.cancel();
        socket.on('error', () => undefined); // Of the end that follows.
        socket.terminate();
        reject(connectError(address, cause));
      };
      const timer = clock.setTimer(timeoutMs, () =>
        fail(new Error(`no answer within ${timeoutMs} ms`)),
      );
      socket.once('error', fail);
      socket.once('open', () => {
        timer.cancel();
        socket.off('error', fail);
        const connection = new WebSocketConnection(socket, address, this.services);
        try {
          connection.attach(open);
          resolve(connection);
        } catch (thrown) {
          fail(thrown);
        }
      });
    });
  }
}

class WebSocketConnection {
  #socket;
  #services;
  #handlers;
  #error;
  #queued = [];
  #queuedBytes = 0;
  #waiters = [];
  #closeTimer;
  #over;
  #end;
  /** A connection ends well when both sides have said goodbye. */
  #hasSaidGoodbye = false;
  #hasHeardGoodbye = false;
  #isOver = false;

  constructor(socket, peerAddress, services) {
    this.#socket = socket;
    this.#services = services;
    this.peerAddress = peerAddress;
    this.#over = new Promise((resolve) => (this.#end = resolve));
    socket.binaryType = 'nodebuffer';
    socket.on('message', (bytes, isBinary) => this.#receive(bytes, isBinary));
    socket.on('error', (cause) => (this.#error ??= brokenError(peerAddress, cause)));
    socket.on('close', () => this.#finish());
  }

  /** @throws what `open` throws: then the connection is no more */
  attach(open) {
    try {
      this.#handlers = open(this);
    } catch (thrown) {
      this.abort(thrown);
      throw thrown;
    }
  }

  get bufferedBytes() {
    return this.#isOver ? 0 : this.#queuedBytes + this.#socket.bufferedAmount;
  }

  get messageBytesMax() {
    return this.#services.codec.frameBytesMax;
  }

  send(...messages) {
    if (this.#isOver || this.#hasSaidGoodbye || messages.length === 0) return;
    const { codec, clock } = this.#services;
    // All are encoded before one is queued: one that cannot travel holds back all of this call.
    const encoded = messages.map((message) => {
      const bytes = codec.encodeMessage(message);
      return codec.keep(bytes) ? bytes : bytes.slice();
    });
    if (this.#queued.length === 0) clock.setTimer(0, () => this.#flush());
    for (const bytes of encoded) {
      this.#queued.push(bytes);
      this.#queuedBytes += bytes.length;
    }
  }

  drained() {
    if (this.bufferedBytes <= HIGH_WATER_BYTES) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  close() {
    this.#sayGoodbye();
    return this.#over;
  }

  abort(reason) {
    if (this.#isOver) return;
    this.#error = reason;
    this.#isOver = true;
    this.#socket.terminate();
  }

  #flush() {
    if (this.#isOver) return;
    const queued = this.#queued;
    this.#queued = [];
    this.#queuedBytes = 0;
    const bytesMax = Math.min(HIGH_WATER_BYTES, this.messageBytesMax);
    for (let from = 0; from < queued.length;) {
      let nbytes = queued[from].length;
      let to = from + 1;
      for (; to < queued.length && nbytes + queued[to].length <= bytesMax; to++) {
        nbytes += queued[to].length;
      }
      const head = Buffer.alloc(HEAD_BYTES);
      head.writeUInt8(ARRAY_32, 0);
      head.writeUInt32BE(to - from, 1);
      const frame = Buffer.concat([head, ...queued.slice(from, to)]);
      this.#socket.send(frame, () => this.#onWritten());
      from = to;
    }
  }

  #onWritten() {
    if (this.bufferedBytes > HIGH_WATER_BYTES) return;
    for (const resolve of this.#waiters.splice(0)) resolve();
  }

  #sayGoodbye() {
    if (this.#isOver || this.#hasSaidGoodbye) return;
    this.#flush();
    this.#hasSaidGoodbye = true;
    this.#socket.send(GOODBYE, () => undefined);
    if (this.#hasHeardGoodbye) this.#socket.close(1000);
    const { clock, closeTimeoutMs } = this.#services;
    this.#closeTimer = clock.setTimer(closeTimeoutMs, () =>
      this.abort(closedError(this.peerAddress, 'it stands still and does not close')),
    );
  }

  #receive(bytes, isBinary) {
    if (this.#isOver) return;
    try {
      if (!isBinary) throw protocolError(this.peerAddress, 'it sent text');
      if (bytes.length > 0) this.#handlers.onMessages(this.#services.codec.decodeBatch(bytes));
      else {
        this.#hasHeardGoodbye = true;
        if (this.#hasSaidGoodbye) this.#socket.close(1000);
        else this.#sayGoodbye();
      }
    } catch (thrown) {
      this.abort(thrown instanceof Error ? thrown : new Error(String(thrown)));
    }
  }

  #finish() {
    const isGood = this.#hasSaidGoodbye && this.#hasHeardGoodbye;
    if (!isGood) this.#error ??= closedError(this.peerAddress, 'the peer dropped it');
    this.#isOver = true;
    this.#closeTimer?.cancel();
    for (const resolve of this.#waiters.splice(0)) resolve();
    this.#handlers?.onClose(this.#error);
    this.#end();
  }
}

function parse(address) {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol === 'ws:' && url.port !== '') return url;
  if (url?.protocol === 'ws:') return { hostname: url.hostname, port: '80' };
  throw connectError(address, new Error('it is not of the form ws://host:port'));
}

function connectError(address, cause) {
  const message = `cannot reach ${address}: ${cause.message}; check the address, and that the peer runs`;
  return new YardmasterError('ERR_CONNECT', message, { address }, { cause });
}

function closedError(peer, reason, cause) {
  return new YardmasterError(
    'ERR_CLOSED',
    `connection with ${peer}: ${reason}`,
    { peer },
    { cause },
  );
}

function protocolError(peer, reason, cause, code = 'ERR_PROTOCOL') {
  return new YardmasterError(code, `connection with ${peer}: ${reason}`, { peer }, { cause });
}

/** What the library reports: bytes that are no WebSocket, a frame that is too large, or a connection that broke. */
function brokenError(peer, cause) {
  if (cause.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH') {
    return protocolError(peer, 'it sent a frame that is too large', cause, 'ERR_FRAME');
  }
  const isForeign = cause.code?.startsWith('WS_ERR_') === true;
  return (isForeign ? protocolError : closedError)(peer, cause.message, cause);
}

export default defineTransport({
  name: 'websocket',
  apiVersion: 1,
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      frameBytesMax: { type: 'integer', minimum: 1024, default: 2 ** 30 },
      connectTimeoutMs: { type: 'number', exclusiveMinimum: 0, default: 10_000 },
      closeTimeoutMs: { type: 'number', exclusiveMinimum: 0, default: 5000 },
    },
  },
  create: ({ clock }, options) => new WebSocketTransport(clock, options),
});
