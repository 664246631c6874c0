"""Workloads as users of Dask write them, played against the scheduler at an address.

    families.py ADDRESS [--quick | --brief] [--list] [WORD...]

Prints one line of JSON for each case: {"family", "case", "seconds", "mark"} with "value", or with "error"
(type and text), or with "skipped" (why). WORD: only cases whose family or name has it. --quick leaves out
cases that are marked as slow; --brief plays only those that are marked as brief. Needs two workers with
two threads each, named `alice` and `bob`; `alice` has two of the resource `GPU`. A case that takes
longer than CASE_LIMIT seconds (environment; default 60) fails.
"""

import gc
import json
import os
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path

from distributed import Client

from kit import VERSION, Skip, described, plain

FOLDER = Path(__file__).resolve().parent / "cases"
LIMIT_S = int(os.environ.get("CASE_LIMIT", "60"))


class TooLong(BaseException):
    """A case did not end. Cases and libraries that catch exceptions do not catch it."""


def family(path):
    """The cases of a file. It runs as `__main__` does, so that its functions travel by value."""
    scope = {"__name__": "__main__", "__file__": str(path)}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    return {name[5:]: case for name, case in scope.items() if name.startswith("case_")}


def outcome(case, client):
    if VERSION < getattr(case, "since", (0,)):
        return {"skipped": "not in this release"}
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S, 5)  # Again and again: a destructor may swallow it.
    try:
        return {"value": plain(case(client))}
    except Skip as skip:
        return {"skipped": str(skip)}
    except (Exception, TooLong) as error:
        return {"error": described(error), "traceback": traceback.format_exc()[-3000:]}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def too_long(*_):
    raise TooLong(f"it did not end within {LIMIT_S} seconds")


def connect():
    client = Client(sys.argv[1], timeout="60s")
    client.wait_for_workers(2, timeout=60)
    return client


def play(selected):
    client = connect()
    for name, title, case in selected:
        gc.collect()  # What an earlier failure holds may hold futures and actors.
        start = time.perf_counter()
        result = outcome(case, client)
        seconds = round(time.perf_counter() - start, 3)
        about = {"family": name, "case": title, "seconds": seconds, "mark": getattr(case, "mark", None)}
        print(json.dumps({**about, **result}), flush=True)
        if "error" in result:  # It may have left anything behind.
            client.close()
            client = connect()
    client.close()


def main():
    flags = [arg for arg in sys.argv[2:] if arg.startswith("--")]
    words = [arg for arg in sys.argv[2:] if not arg.startswith("--")]
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, too_long)
    selected = [
        (path.stem, title, case)
        for path in sorted(FOLDER.glob("*.py"))
        for title, case in family(path).items()
        if not words or any(word in f"{path.stem}/{title}" for word in words)
        if "--quick" not in flags or not getattr(case, "slow", False)
        if "--brief" not in flags or getattr(case, "brief", False)
    ]
    if "--list" in flags:
        print("\n".join(f"{name}/{title}" for name, title, _ in selected))
    else:
        play(selected)


if __name__ == "__main__":
    main()
