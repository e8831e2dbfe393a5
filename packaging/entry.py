"""Where the bundled program starts: the ``slipstream`` command."""

import multiprocessing
import sys

from app.__main__ import main

if __name__ == "__main__":
    multiprocessing.freeze_support()  # parsers run in child processes, which start this program again
    sys.exit(main())
