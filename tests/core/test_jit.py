"""Kernels: compiled once, off this process, and found again."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import core
from core import jit


def test_the_flag_callback_reads_a_byte_and_needs_no_python():
    function = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)(jit.flag_callback())
    flag = np.zeros(1, np.uint8)
    assert function(flag.ctypes.data) is False
    flag[0] = 1
    assert function(flag.ctypes.data) is True
    assert jit.flag_callback() == jit.flag_callback()


def test_every_kernel_module_is_listed_and_nobody_else_compiles():
    root = Path(core.__file__).parent
    users = {
        ".".join(("core", *path.relative_to(root).with_suffix("").parts))
        for path in root.rglob("*.py")
        if "import kernel\n" in path.read_text()
    }
    assert users == set(jit.KERNEL_MODULES)
    for path in root.rglob("*.py"):
        if path.name != "jit.py":
            assert "numba" not in path.read_text().replace("Numba", ""), path


def test_the_second_start_compiles_nothing(tmp_path, monkeypatch):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    code = "from core import jit; jit.ensure_compiled()"

    def start(extra=""):
        return subprocess.run(
            [sys.executable, "-c", code + extra], env=environment, cwd=Path(core.__file__).parent.parent,
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip

    start()
    kernels = sorted(tmp_path.rglob("*.nbc"))
    assert kernels
    assert list(tmp_path.glob("compiled-*"))
    before = [path.stat().st_mtime_ns for path in kernels]
    start("; jit.compile_all(); import sys; print('numba' in sys.modules)")
    assert [path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*.nbc"))] == before


def test_a_changed_kernel_source_has_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(jit.platformdirs, "user_cache_dir", lambda *_, **__: str(tmp_path))
    first = Path(jit._cache_folder())
    assert Path(jit._cache_folder()) == first
    old = tmp_path / "kernels" / "of another build"
    old.mkdir()
    os.utime(old, (0, 0))
    monkeypatch.setattr(jit, "_build_id", lambda: "changed")
    second = Path(jit._cache_folder())
    assert (second.parent, second.name) == (first.parent, "changed")
    assert first.exists()
    assert not old.exists()
