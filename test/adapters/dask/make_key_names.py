"""Writes what Dask takes for the prefix and the group of many keys: rows of [key, prefix, group].

    python3 test/adapters/dask/make_key_names.py [COUNT] > test/core/state/data/key-names.json

Keys are drawn from pieces that the rules of the names tell apart, by a fixed seed.
"""

import json
import random
import sys

from dask.utils import key_split
from distributed.utils import key_split_group

WORDS = [
    "x", "inc", "sum", "abc", "de", "read_csv", "download", "aggregate", "abcdefab", "deadbeef", "facade",
    "Ab", "ABCDEFAB", "été", "straße", "ñ", "数据", "ß" * 8, "d" * 8, "a1b2c3d4", "5f", "0", "12", "1x",
    "x1", "_", "_x_", "'x'", "", "a b", "x.y", "<lambda>", "<a.b.C object at 0x7f>", "<>", "<a", "c>", "²",
    "ae05086432ca935f6eba409a8ecd4896", "abcdefabcdefabcdefabcdefabcdefab", "A" * 32, "f" * 31, "f" * 33,
    "ae05086432ca935f6eba409a8ecd489", "𝒳", "𝒳" * 8, "a𝒳bcdefg", "\u00a0", "\x1c", ".", "...", ",", "(", ")",
]
FORMS = ["{0}", "({0!r}, 0)", "({0!r}, 0, 1)", '("{0}", 0)', "({0})", "(({0!r}, 1), 2)", "({0!r},)", "_({0})", "b{0!r}"]


def key(rng):
    name = "-".join(rng.choice(WORDS) for _ in range(rng.choice([1, 1, 2, 2, 3, 4])))
    return rng.choice(FORMS[:1] * 6 + FORMS).format(name)


def group_of(text):
    try:
        return key_split_group(text)
    except IndexError:
        return key_split(text)


def main(count):
    rng = random.Random(13)
    keys = dict.fromkeys(WORDS + [key(rng) for _ in range(count)])
    rows = [json.dumps([text, key_split(text), group_of(text)]) for text in keys]
    print("[\n  " + ",\n  ".join(rows) + "\n]")


main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
