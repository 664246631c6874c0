"""What cases share: marks, errors as values, values that can be compared as JSON, and further workers."""

import dataclasses
import datetime
import importlib
import math
import re
import subprocess
import sys
import time

import distributed

VERSION = tuple(int(part) for part in re.findall(r"\d+", distributed.__version__)[:3])
DIGITS = 9  # Significant ones: sums are taken in another order from run to run.


class Skip(Exception):
    """The case cannot run with this Python; the message says why."""


def slow(case):
    """Marks a case that `--quick` leaves out."""
    case.slow = True
    return case


def brief(case):
    """Marks a case of the selection that `--brief` plays."""
    case.brief = True
    return case


def differs(why, ours, since=(0,), before=(9999,)):
    """Marks a case that differs from the stock scheduler on purpose in these releases: `ours` is the value that it has here."""

    def mark(case):
        if since <= VERSION < before:
            case.mark = {"why": why, "ours": plain(ours)}
        return case

    return mark


def stock_fails(why, since=(0,), before=(9999,)):
    """Marks a case that fails with Dask's own scheduler in these releases. With ours it has a value nevertheless."""

    def mark(case):
        if since <= VERSION < before:
            case.mark = {"why": why}
        return case

    return mark


def since(*version):
    """Marks a case for this release of distributed and later ones."""

    def mark(case):
        case.since = version
        return case

    return mark


def needs(name):
    """The module of this name. Skips the case when it cannot be imported."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Skip(f"{name} is not installed") from None


def failure(function, *args, **kwargs):
    """The type and text of the error that a call raises."""
    try:
        value = function(*args, **kwargs)
    except Exception as error:
        return described(error)
    raise AssertionError(f"no error was raised, the value is {value!r}")


def described(error):
    return [type(error).__name__, scrubbed(str(error))]


def scrubbed(text):
    """A text without what differs from run to run: addresses, identifiers, durations, places in memory."""
    text = re.sub(r"(tcp|inproc)://[\w.:-]+", "ADDRESS", text)
    text = re.sub(r"0x[0-9a-f]+", "0xID", text)
    text = re.sub(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UUID", text)
    text = re.sub(r"\b[0-9a-f]{32}\b", "HASH", text)
    return re.sub(r"\d+\.\d+ ?(s|ms|us)\b", "TIME", text)


def plain(value):
    """A value of JSON that is equal for equal values."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return scrubbed(value)
    if isinstance(value, float):
        return plain_float(value)
    if isinstance(value, dict):
        return {scrubbed(str(key)): plain(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, (set, frozenset)):
        return sorted((plain(item) for item in value), key=str)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain(dataclasses.asdict(value))
    if isinstance(value, (datetime.datetime, datetime.timedelta)):
        return str(value)
    if hasattr(value, "to_dict"):  # A table, or a column of one.
        return {"type": type(value).__name__, "values": plain(value.to_dict())}
    if hasattr(value, "tolist"):  # An array, or a number of NumPy.
        return plain(value.tolist())
    return scrubbed(repr(value))


def plain_float(value):
    if math.isnan(value) or math.isinf(value):
        return str(value)
    rounded = float(f"{value:.{DIGITS}g}")
    return 0.0 if abs(rounded) < 1e-12 else rounded


def names(client):
    """The names of the workers by their addresses."""
    workers = client.scheduler_info()["workers"]
    return {address: facts["name"] for address, facts in workers.items()}


def address_of(client, name):
    return next(address for address, found in names(client).items() if found == name)


def until(holds, seconds=30):
    for _ in range(seconds * 50):
        if holds():
            return True
        time.sleep(0.02)
    return False


class Joined:
    """One more worker, with one thread and no nanny, until the end of the block."""

    def __init__(self, client, name="carol", memory="1GiB", flags=("--no-nanny",)):
        self.client = client
        self.name = name
        command = [sys.executable, "-m", "distributed.cli.dask_worker", client.scheduler.address, "--name", name]
        flags = ["--nthreads", "1", "--no-dashboard", "--memory-limit", memory, *flags]
        self.process = subprocess.Popen(command + flags, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @property
    def address(self):
        return address_of(self.client, self.name)

    def is_there(self):
        return self.name in names(self.client).values()

    def kill(self):
        self.process.kill()

    def __enter__(self):
        assert until(self.is_there, 40), f"{self.name} did not come"
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        until(lambda: not self.is_there())
