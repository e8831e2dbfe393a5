"""The one door to Numba: ``kernel`` compiles a function for this machine; nobody else calls njit.

Every kernel releases the GIL and has an explicit signature, so it is compiled when its module is
imported and never in the middle of a question. Compiled code is cached in a folder of the user's,
because a cache is tied to processor, interpreter and path and cannot be shipped.
``compile_in_child`` fills that cache in a child process: compiling here would stop the window for
100 ms at a time.
"""

import contextlib
import importlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import platformdirs
import xxhash

KERNEL_MODULES = (
    "core.cut_rules",
    "core.cdc",
    "core.index.kernels",
    "core.index.order_kernels",
    "core.engine.eviction_kernels",
    "core.plan.contextpilot_kernels",
    "core.plan.dedup_kernels",
    "core.plan.forest_kernels",
    "core.plan.overlap_kernels",
    "core.retrieval.vector_kernels",
)
"""Every module that defines kernels; importing it compiles or loads them."""
_KEPT_DAYS = 30
"""Compiled code of other builds is removed after so long."""


def _build_id() -> str:
    """Names interpreter, kernel sources and processor: a cache of another one is not accepted."""
    parts = [sys.executable, sys.version, platform.machine(), platform.processor()]
    for name in ("core.jit", *KERNEL_MODULES):
        source = Path(__file__).parent.parent / (name.replace(".", "/") + ".py")
        if source.exists():
            parts.append(str(source.stat().st_mtime_ns))
    return xxhash.xxh3_64_hexdigest("|".join(parts).encode())


def _cache_folder() -> str:
    """A folder that can be written: the user's own, else one that lasts as long as this machine runs.

    One for each build: Numba looks only at the file of a kernel, not at those of the kernels that it calls,
    and would go on with what was compiled of an older version of them.
    """
    base = Path(platformdirs.user_cache_dir("slipstream", appauthor=False)) / "kernels"
    folder = base / _build_id()
    try:
        if not folder.exists():
            folder.mkdir(parents=True)
            _remove_old(base)
        if os.access(folder, os.W_OK):
            os.utime(folder)  # it is in use
            return str(folder)
    except OSError:
        pass
    return tempfile.mkdtemp(prefix="slipstream-kernels-")


def _remove_old(base: Path) -> None:
    for folder in base.iterdir():
        if time.time() - folder.stat().st_mtime > _KEPT_DAYS * 86_400:
            shutil.rmtree(folder, ignore_errors=True)


if "NUMBA_CACHE_DIR" not in os.environ:  # read by Numba when it is imported
    os.environ["NUMBA_CACHE_DIR"] = _cache_folder()

_F = TypeVar("_F", bound=Callable[..., object])

_flag_callback: Any = None
_compiling = threading.Lock()
_POLL_S = 0.05


def kernel(signature: str) -> Callable[[_F], _F]:
    """Compile a function with Numba for ``signature`` (Numba's notation, for example ``"i8(u1[::1])"``)."""
    import numba

    return cast(
        "Callable[[_F], _F]",
        numba.njit(signature, nogil=True, cache=True, boundscheck=False, error_model="numpy"),
    )


def flag_callback() -> int:
    """Address of a native ``bool (*)(void *flag)``: true if the byte at ``flag`` is not 0.

    For libraries that ask often, on their own threads, whether to stop: no Python, no GIL.
    """
    global _flag_callback  # noqa: PLW0603  (the compiled code must live as long as the process)
    if _flag_callback is None:
        import numba

        @numba.cfunc("b1(voidptr)", cache=True)  # type: ignore[untyped-decorator]
        def read(flag: Any) -> bool:
            return bool(numba.carray(flag, 1, numba.uint8)[0] != 0)

        _flag_callback = read
    return int(_flag_callback.address)


def compile_all() -> None:
    """Compile or load every kernel in this process."""
    flag_callback()
    for name in KERNEL_MODULES:
        importlib.import_module(name)


def ensure_compiled(stop: threading.Event | None = None) -> None:
    """Compile the kernels in a child process unless this very program did so before. Waits, until ``stop``.

    To be called off the window's thread, before a kernel module is imported there. A failure costs only
    speed: the kernels are then compiled in this process.
    """
    with _compiling:
        marker = Path(os.environ["NUMBA_CACHE_DIR"]) / f"compiled-{_build_id()}"
        if marker.exists():
            return
        if compile_in_child(stop):
            with contextlib.suppress(OSError):
                marker.touch()


def compile_in_child(stop: threading.Event | None = None) -> bool:
    """Fill the kernel cache in a child process. True if it succeeded; a failure costs only speed."""
    if getattr(sys, "frozen", False):
        command = [sys.executable, "compile-kernels"]
    else:
        command = [sys.executable, "-c", "from core.jit import compile_all; compile_all()"]
    try:
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
            while child.poll() is None:
                if stop is not None and stop.wait(_POLL_S):
                    child.kill()
                    return False
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(_POLL_S)
            return child.returncode == 0
    except OSError:
        return False
