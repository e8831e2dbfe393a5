"""The first step of ``make run`` and ``make test``: find a Python that is new enough, then set up.

This file must parse and run on any Python 3 a machine may call ``python3`` (JetPack 6 has 3.10, older
systems 3.6), so that an old one gives way to a newer one or says what is needed. The work itself is
in ``setup_env.py``. Standard library only.
"""

import os
import shutil
import subprocess
import sys

OLDEST = (3, 11)
NEWEST = (3, 14)
"""The newest for which every dependency has ready-made wheels; a newer Python is the last choice."""
CANDIDATES = ("python3.13", "python3.12", "python3.11", "python3.14")

TOO_OLD = """
Slipstream needs Python 3.11 or newer, and this machine's python3 is {version} ({executable}).

  Debian, Ubuntu, JetPack:   sudo apt install python3.11 python3.11-venv
  Fedora:                    sudo dnf install python3.12
  macOS:                     brew install python@3.12

Then type the same command again. Another Python can be named: make run PYTHON=/path/to/python3.12
"""


def usable(path: str) -> bool:
    """Whether the program at ``path`` runs and is a Python in the supported range (pyenv's shims may not)."""
    code = "import sys; sys.exit(not {} <= sys.version_info[:2] <= {})".format(OLDEST, NEWEST)  # noqa: UP032
    try:
        with open(os.devnull, "w") as null:  # noqa: PTH123
            return subprocess.call([path, "-c", code], stdout=null, stderr=null) == 0
    except OSError:
        return False


def another_python() -> "str | None":
    for name in CANDIDATES:
        path = shutil.which(name)
        if path and usable(path):
            return path
    return None


def main() -> int:
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        path = another_python()
        if path:
            sys.stdout.flush()
            os.execv(path, [path, os.path.abspath(__file__)] + sys.argv[1:])  # noqa: PTH100, RUF005, S606
        version = ".".join(str(part) for part in sys.version_info[:3])
        if sys.version_info[:2] < OLDEST:
            sys.stderr.write(TOO_OLD.format(version=version, executable=sys.executable))
            return 1
        note = "Note: Slipstream was not tried with Python {}; some packages may have to be compiled.\n"
        sys.stderr.write(note.format(version))
    import setup_env

    return setup_env.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
