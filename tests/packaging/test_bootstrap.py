import ast
import subprocess
import sys
from pathlib import Path

import bootstrap

SOURCE = Path(bootstrap.__file__)


def script(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_this_python_is_usable_and_other_programs_are_not(tmp_path):
    assert bootstrap.usable(sys.executable)
    assert not bootstrap.usable(str(tmp_path / "nothing"))
    # pyenv's shims exist and fail
    assert not bootstrap.usable(str(script(tmp_path, "shim", "exit 127")))


def test_a_broken_newer_python_is_passed_over(tmp_path, monkeypatch):
    script(tmp_path, "python3.13", "exit 127")
    (tmp_path / "python3.12").symlink_to(script(tmp_path, "real", f'exec {sys.executable} "$@"'))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert bootstrap.another_python() == str(tmp_path / "python3.12")


def test_no_python_at_all(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert bootstrap.another_python() is None


def test_too_old_a_python_says_what_to_install(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(bootstrap.sys, "version_info", (3, 10, 12))
    assert bootstrap.main() == 1
    said = capsys.readouterr().err
    assert "needs Python 3.11" in said
    assert "3.10.12" in said
    assert "sudo apt install python3.11" in said


def test_an_old_python_hands_over_with_its_arguments(monkeypatch, tmp_path):
    called = []
    monkeypatch.setattr(bootstrap.sys, "version_info", (3, 8, 0))
    monkeypatch.setattr(bootstrap.sys, "argv", ["bootstrap.py", "--extras", "test"])
    monkeypatch.setattr(bootstrap, "another_python", lambda: "/usr/bin/python3.12")
    monkeypatch.setattr(bootstrap.os, "execv", lambda path, args: called.append((path, args)))
    monkeypatch.setitem(sys.modules, "setup_env", type("Module", (), {"main": staticmethod(lambda _: 0)}))
    bootstrap.main()
    assert called[0] == ("/usr/bin/python3.12", ["/usr/bin/python3.12", str(SOURCE), "--extras", "test"])


def test_both_files_that_old_pythons_run_parse_there():
    for path in (SOURCE, SOURCE.with_name("system_libs.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 6))
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.NamedExpr)]


def test_help_works_without_setting_anything_up():
    done = subprocess.run([sys.executable, SOURCE, "--help"], capture_output=True, text=True, check=True)
    assert "--backend" in done.stdout
