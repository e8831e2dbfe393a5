"""The console command ``slipstream``: the command line of the core, with a window to open."""

import sys
from collections.abc import Sequence

from core.cli import main as run
from core.config import WindowOptions


def open_window(options: WindowOptions) -> int:
    """Qt is imported only when a window is wanted: ``slipstream ask`` works without it."""
    from app.application import open_window as open_it

    return open_it(options)


def main(argv: Sequence[str] | None = None) -> int:
    return run(argv, open_window=open_window)


if __name__ == "__main__":
    sys.exit(main())
