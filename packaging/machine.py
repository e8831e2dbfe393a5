"""What this machine must have before set-up can go on, and the one command that installs what it lacks.

Standard library only.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import system_libs


class SetupError(Exception):
    """Set-up cannot go on; the message says why and what to do."""


@dataclass(frozen=True)
class Lack:
    """Something that the machine must have before set-up can go on."""

    what: str
    debian: tuple[str, ...]
    """Packages of Debian, Ubuntu and JetPack."""


def compiler_lacks() -> list[Lack]:
    """C and C++ compilers that are missing or do not work."""
    lacks = []
    for language, label, variable, names, program in (
        ("c", "C", "CC", ("cc", "gcc", "clang"), "#include <stdio.h>\nint main(void) { return 0; }"),
        ("c++", "C++", "CXX", ("c++", "g++", "clang++"), "#include <vector>\nint main() { return 0; }"),
    ):
        compiler = os.environ.get(variable, "").split() or [name for name in names if shutil.which(name)][:1]
        if not compiler:
            lacks.append(Lack(f"a {label} compiler (llama.cpp is compiled for this machine)", ("g++",)))
            continue
        with tempfile.TemporaryDirectory() as folder:
            command = [*compiler, "-x", language, "-", "-o", f"{folder}/a.out"]
            try:
                done = subprocess.run(command, input=program, capture_output=True, text=True, check=False)
                fault = done.stderr.strip() if done.returncode else ""
            except OSError as error:
                fault = str(error)
        if fault:
            lacks.append(
                Lack(f"a {label} compiler that works ({' '.join(compiler)} says: {fault})", ("g++",))
            )
    return lacks


def venv_lacks() -> list[Lack]:
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        return [Lack(f"the venv module of {version} ({sys.executable})", (f"{version}-venv",))]
    return []


def library_lacks(*, window: bool) -> list[Lack]:
    """Libraries of the system that Qt needs, in memory and (``window``) on this screen."""
    missing = system_libs.missing(system_libs.TO_START)
    x11 = os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY")
    if window and x11 and os.environ.get("QT_QPA_PLATFORM", "xcb") == "xcb":
        missing += system_libs.missing(system_libs.FOR_X11)
    if not missing:
        return []
    return [
        Lack(f"libraries that the window needs: {', '.join(missing)}", tuple(system_libs.packages(missing)))
    ]


def refuse(lacks: list[Lack]) -> None:
    """Raise SetupError with everything that is lacking at once, and the one command that installs it."""
    if not lacks:
        return
    listed = "".join(f"\n  - {lack.what}" for lack in lacks)
    packages = list(dict.fromkeys(package for lack in lacks for package in lack.debian))
    if sys.platform == "darwin":
        advice = "    xcode-select --install"
    else:
        advice = f"On Debian, Ubuntu and JetPack:\n\n    sudo apt install {' '.join(packages)}"
    raise SetupError(f"This machine lacks:\n{listed}\n\n{advice}\n\nThen type the same command again.")


def check_qt(python: Path) -> None:
    """Load Qt in the new environment: the table in system_libs.py may not know every system."""
    code = "import PySide6.QtGui, PySide6.QtWidgets"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return
    missing = re.findall(r"(lib[\w.+-]+\.so[\w.]*): cannot open", done.stderr)
    if not missing:
        raise SetupError(f"Slipstream is installed, but Qt does not start:\n{done.stderr.strip()}")
    refuse([Lack(f"a library that the window needs: {missing[0]}", tuple(system_libs.packages(missing)))])
