"""Messages between this process and the scheduler that started it.

They travel over standard input and output, each as a message of Dask: a table of lengths (u64,
little-endian: all bytes that follow, number of frames, length of each frame), then the frames, the first
of which is msgpack. Both sides may ask, at any time:

    scheduler to us:  {"id", "op", ...}                   a request; answered with {"id", ...} or {"id", "error"}
                      {"op": "events", "events"}          answered with {"acknowledged"} when all are handled
                      {"answer", "value"} or {"answer", "error"}
    us to scheduler:  {"ask", "op", "fields"}             "ask" is null when no answer is wanted
                      {"ready", "versions"}               first of all

A thread reads, so that code in the main thread can wait for an answer without giving up the main thread.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import struct
import threading

#: Frames go to other processes as they are; these may not have the libraries that compress.
UNCOMPRESSED = {"compression": None}


class Channel:
    """Both directions. Every method can be called by any thread."""

    def __init__(self):
        self._requests = os.fdopen(os.dup(0), "rb", buffering=2**20)
        self._answers = os.fdopen(os.dup(1), "wb", buffering=2**20)
        # What user code prints must not get between the messages.
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        os.dup2(2, 1)
        self._writing = threading.Lock()
        self._ids = itertools.count(1)
        #: Called with the answer, by the reading thread.
        self._waiting = {}

    def send(self, message) -> None:
        """Raises what the serialisation raises; then nothing was sent."""
        from distributed.protocol.core import dumps

        frames = dumps(message, on_error="raise", context=UNCOMPRESSED)
        lengths = [memoryview(frame).nbytes for frame in frames]
        table = struct.pack(f"<{len(frames) + 1}Q", len(frames), *lengths)
        with self._writing:
            self._answers.write(struct.pack("<Q", len(table) + sum(lengths)))
            self._answers.write(table)
            for frame in frames:
                self._answers.write(frame)
            self._answers.flush()

    def tell(self, op, **fields) -> None:
        """Asks for something without waiting for it."""
        self.send({"ask": None, "op": op, "fields": fields})

    def ask(self, op, **fields):
        """Asks, and blocks the calling thread until the answer is there. Raises what the scheduler raised."""
        arrived = threading.Event()
        answers = []

        def take(message):
            answers.append(message)
            arrived.set()

        self._ask(op, fields, take)
        arrived.wait()
        return value_of(answers[0])

    async def ask_soon(self, op, **fields):
        """As `ask`, for coroutines."""
        loop = asyncio.get_running_loop()
        arrived = loop.create_future()

        def take(message):
            loop.call_soon_threadsafe(lambda: arrived.done() or arrived.set_result(message))

        self._ask(op, fields, take)
        return value_of(await arrived)

    def _ask(self, op, fields, take) -> None:
        id = next(self._ids)
        self._waiting[id] = take
        try:
            self.send({"ask": id, "op": op, "fields": fields})
        except BaseException:
            del self._waiting[id]
            raise

    def read_all(self, deliver) -> None:
        """Reads until the scheduler ends. What is no answer is given to `deliver`."""
        from distributed.protocol.core import loads

        while True:
            frames = self._read()
            if frames is None:
                return
            message = loads(frames, deserialize=False)
            answered = message.get("answer")
            if answered is None:
                deliver(message)
            else:
                self._waiting.pop(answered)(message)

    def _read(self):
        """Frames of the next message; None at the end."""
        head = self._requests.read(16)
        if len(head) < 16:
            return None
        _, count = struct.unpack("<QQ", head)
        lengths = struct.unpack(f"<{count}Q", self._requests.read(8 * count))
        return [self._requests.read(length) for length in lengths]


def value_of(answer):
    from distributed.core import clean_exception

    error = answer.get("error")
    if error is None:
        return answer.get("value")
    _, exception, traceback = clean_exception(**error)
    raise exception.with_traceback(traceback)
