"""A client of Dask: runs the graphs that come as lines of JSON, and prints the seconds that each took."""
import json
import sys
import time

from distributed import Client, wait

# Bytes that do not get smaller when they are compressed.
BYTES = bytes((value * value * 2654435761 >> 13) & 255 for value in range(1 << 20))


def sleep(ms, nbytes, *inputs):
    time.sleep(ms / 1000)
    return result(nbytes)


def compute(ms, nbytes, *inputs):
    end = time.perf_counter() + ms / 1000
    while time.perf_counter() < end:
        pass
    return result(nbytes)


def result(nbytes):
    return (BYTES * (nbytes // len(BYTES) + 1))[:nbytes]


def main(address, workers):
    with Client(address) as client:
        client.wait_for_workers(workers)
        print("ready", flush=True)
        for line in sys.stdin:
            tasks, keys, is_busy = json.loads(line)
            function = compute if is_busy else sleep
            graph = {key: (function, ms, nbytes, *needs) for key, ms, nbytes, needs in tasks}
            began = time.perf_counter()
            futures = client.get(graph, keys, sync=False)
            wait(futures)
            print(time.perf_counter() - began, flush=True)
            del futures


if __name__ == "__main__":
    import real_tasks  # Workers import the module by its name.

    real_tasks.main(sys.argv[1], int(sys.argv[2]))
