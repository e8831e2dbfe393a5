import subprocess
import sys
from pathlib import Path

import pytest
import system_libs

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only")


def test_what_is_here_is_not_missing_and_what_is_not_is():
    assert system_libs.missing(["libc.so.6", "libnobody-has-this.so.9"]) == ["libnobody-has-this.so.9"]


def test_each_package_once_and_unknown_libraries_left_out():
    names = ["libgthread-2.0.so.0", "libglib-2.0.so.0", "libEGL.so.1", "libfoo.so.1"]
    assert system_libs.packages(names) == ["libglib2.0-0", "libegl1"]


def test_missing_tools_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    assert system_libs.missing_tools() == ["g++", "python3-venv"]


def test_as_a_program_it_prints_one_line():
    done = subprocess.run(
        [sys.executable, Path(system_libs.__file__)], capture_output=True, text=True, check=True
    )
    assert done.stdout.count("\n") == 1


def test_the_table_knows_every_library_that_qt_asks_for():
    """What Qt's own libraries are linked to and the C library does not bring is in the table."""
    if not (objdump := __import__("shutil").which("objdump")):
        pytest.skip("objdump is not installed")
    import PySide6

    root = Path(PySide6.__file__).parent
    known = set(system_libs.TO_START) | set(system_libs.FOR_X11)
    everywhere = ("libc.", "libm.", "libdl.", "librt.", "libpthread.", "libgcc_s.", "libstdc++.", "ld-linux")
    inside = {path.name for path in (root / "Qt" / "lib").iterdir()} | {path.name for path in root.iterdir()}
    inside |= {path.name for path in (root.parent / "shiboken6").iterdir()}
    for part in ("Core", "Gui", "Widgets", "DBus", "Svg", "XcbQpa"):
        path = root / "Qt" / "lib" / f"libQt6{part}.so.6"
        text = subprocess.run([objdump, "-p", path], capture_output=True, text=True, check=True).stdout
        needed = {line.split()[1] for line in text.splitlines() if "NEEDED" in line}
        assert {name for name in needed - known - inside if not name.startswith(everywhere)} == set(), part
