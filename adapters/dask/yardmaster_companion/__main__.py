"""Runs Python of Dask's users beside a scheduler that is not written in Python.

    python .../yardmaster_companion

The scheduler starts this folder with the Python that its clients use. `channel.py` describes their protocol.
"""

import os
import sys


def main() -> None:
    # Modules of users must not be hidden by the files of this folder, nor get their bytecode into it.
    here = os.path.dirname(os.path.abspath(__file__))
    write_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    sys.path[:] = [path for path in sys.path if path != here]
    sys.path.insert(0, os.path.dirname(here))
    from yardmaster_companion.serve import serve

    del sys.path[0]
    sys.dont_write_bytecode = write_bytecode
    serve()


if __name__ == "__main__":
    main()
