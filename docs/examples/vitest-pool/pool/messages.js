import { deserialize, serialize } from 'node:v8';

const HEADER_BYTES = 4;

/** Values over a socket: each is its length and its bytes, as structured clones are written. */
export class Messages {
  #chunks = [];
  #byteCount = 0;

  constructor(socket, onMessage) {
    this.socket = socket;
    this.onMessage = onMessage;
    socket.setNoDelay();
    socket.on('data', (chunk) => this.#read(chunk));
    // What it means that the other side is gone is seen from its task.
    socket.on('error', () => socket.destroy());
  }

  send(message) {
    const bytes = serialize(message);
    const header = Buffer.alloc(HEADER_BYTES);
    header.writeUInt32BE(bytes.length);
    this.socket.cork();
    this.socket.write(header);
    this.socket.write(bytes);
    this.socket.uncork();
  }

  end(onEnd) {
    this.socket.end(onEnd);
  }

  #read(chunk) {
    this.#chunks.push(chunk);
    this.#byteCount += chunk.length;
    for (let bytes = this.#take(); bytes !== undefined; bytes = this.#take())
      this.onMessage(deserialize(bytes));
  }

  /** The bytes of a message that is complete. */
  #take() {
    if (this.#byteCount < HEADER_BYTES) return undefined;
    if (this.#chunks[0].length < HEADER_BYTES) this.#chunks = [Buffer.concat(this.#chunks)];
    const end = HEADER_BYTES + this.#chunks[0].readUInt32BE();
    if (this.#byteCount < end) return undefined;
    const all = this.#chunks.length === 1 ? this.#chunks[0] : Buffer.concat(this.#chunks);
    this.#chunks = end < all.length ? [all.subarray(end)] : [];
    this.#byteCount -= end;
    return all.subarray(HEADER_BYTES, end);
  }
}
