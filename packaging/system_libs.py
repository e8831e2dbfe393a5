"""The libraries of the system that Qt needs on Linux, and the Debian packages that hold them.

As a program it prints the packages that are missing, on one line; nothing where all are there.
Runs before anything is installed, on any Python 3: standard library only.
"""

import ctypes
import shutil
import sys
from collections.abc import Iterable

TO_START = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libX11.so.6": "libx11-6",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgthread-2.0.so.0": "libglib2.0-0",
    "libz.so.1": "zlib1g",
    "libzstd.so.1": "libzstd1",
}
"""Without these not even the tests, which draw to memory, can start Qt."""

FOR_X11 = {
    "libX11-xcb.so.1": "libx11-xcb1",
    "libxcb.so.1": "libxcb1",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-util.so.1": "libxcb-util1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
}
"""What a window on an X11 screen needs besides."""


def missing(libraries: "Iterable[str]") -> "list[str]":
    """The names of ``libraries`` (soname -> package) that the system's loader does not find."""
    if not sys.platform.startswith("linux"):
        return []
    names = []
    for name in libraries:
        try:
            ctypes.CDLL(name)
        except OSError:
            names.append(name)
    return names


def packages(names: "Iterable[str]") -> "list[str]":
    """The Debian packages that hold the libraries of these names, each once, in order."""
    known = dict(TO_START, **FOR_X11)
    return list(dict.fromkeys(known[name] for name in names if name in known))


def missing_tools() -> "list[str]":
    """The Debian packages of the tools that set-up itself needs and that are not there."""
    wanted = []
    if not any(shutil.which(name) for name in ("c++", "g++", "clang++")):
        wanted.append("g++")
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        wanted.append("python3-venv")
    return wanted


if __name__ == "__main__":
    print(" ".join(missing_tools() + packages(missing(TO_START))))
