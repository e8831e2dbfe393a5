"""``make bundle``: builds dist/slipstream with PyInstaller and tests it as a stranger's machine would.

The self-test runs in the built folder with an empty home, no Python on the PATH and the network off.
llama.cpp inside is the one of ``.venv``, compiled for this machine's processor. A bundle for others wants

    CMAKE_ARGS=-DGGML_NATIVE=OFF make bundle

(set-up then compiles llama.cpp again), on the oldest system it shall run on: the C library is not inside.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import system_libs

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "dist" / "slipstream"
PROGRAM = FOLDER / "slipstream"
WINDOW_STAYS_S = 8


def build() -> None:
    """Run PyInstaller; its warnings about libraries of other platforms are left in build/."""
    log = ROOT / "build" / "pyinstaller.log"
    log.parent.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "PyInstaller", "build.spec", "--noconfirm", "--log-level", "WARN",
               "--distpath", str(FOLDER.parent), "--workpath", str(log.parent)]  # fmt: skip
    with log.open("wb") as output:
        done = subprocess.run(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        sys.exit(
            f"{log.read_text(encoding='utf-8', errors='replace')[-4000:]}\nPyInstaller failed; see {log}."
        )


def without_network() -> list[str]:
    """The prefix that runs a command with the network off; empty where this user may not do that."""
    unshare = shutil.which("unshare")
    for options in (["--net"], ["--net", "--user", "--map-root-user"]):
        if (
            unshare
            and subprocess.run([unshare, *options, "true"], capture_output=True, check=False).returncode == 0
        ):
            return [unshare, *options]
    return []


def bare_environment(home: Path) -> dict[str, str]:
    """Nothing but a home: no Python, no compiler, no settings."""
    return {"HOME": str(home), "PATH": "/nonexistent", "QT_QPA_PLATFORM": "offscreen", "LANG": "C.UTF-8"}


def selftest(prefix: list[str], home: Path) -> None:
    done = subprocess.run([*prefix, PROGRAM, "selftest"], env=bare_environment(home), cwd=home, check=False)
    if done.returncode != 0:
        sys.exit(f"The bundle's self-test failed (exit code {done.returncode}).")


def window(prefix: list[str], home: Path) -> None:
    """The window opens, on a screen in memory, and is still there after a few seconds."""
    log = home / "window.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*prefix, PROGRAM], env=bare_environment(home), cwd=home, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            process.wait(WINDOW_STAYS_S)
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                sys.exit("The bundle's window did not close when asked to.")
            return
    said = log.read_text(encoding="utf-8", errors="replace")
    sys.exit(f"The bundle's window closed by itself (exit code {process.returncode}):\n{said}")


def size_mb(folder: Path) -> float:
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return sum(path.stat().st_size for path in files) / 1e6


def main() -> None:
    started = time.monotonic()
    print("Building dist/slipstream (about a minute)", flush=True)
    if missing := system_libs.missing(system_libs.FOR_X11):
        packages = " ".join(system_libs.packages(missing))
        print(
            f"Note: {', '.join(missing)} is not on this machine. On a machine where windows are shown\n"
            f"through X11 the bundle will ask for it. To put it inside: sudo apt install {packages}"
        )
    build()
    print(
        f"Built in {time.monotonic() - started:.0f} s: {size_mb(FOLDER):.0f} MB. Now its self-test:",
        flush=True,
    )
    prefix = without_network()
    if not prefix:
        print("Note: this user may not switch the network off, so it stays on during the test.", flush=True)
    with tempfile.TemporaryDirectory(prefix="slipstream-bundle-") as folder:
        selftest(prefix, Path(folder))
        window(prefix, Path(folder))
    network = "network off" if prefix else "network on"
    print(f"{os.path.relpath(FOLDER)} works: self-test and window, no Python on the PATH, {network}.")


if __name__ == "__main__":
    main()
