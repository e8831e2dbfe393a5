"""The shape of the repository: what may stand where, and what must agree with what."""

import os
import pwd
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from core import __version__

ROOT = Path(__file__).resolve().parent.parent

TOP_LEVEL = {
    "pyproject.toml", "README.md", "app", "core", "assets", "tests", "packaging", "build.spec", ".ci", ".gitignore",
    "LICENSE", "CHANGELOG.md", "Makefile",
}  # fmt: skip
LARGEST_FILE_BYTES = 1_500_000
WITHOUT_SOURCE = {
    "tests/test_layout.py",
}
"""Tests of no one source file. Every other tests/a/test_b.py is about a/b.py or the package a/b/."""
IN_ONE_SITTING = 400
"""About as many lines as are read in one sitting: a mark to look at, never a limit."""


def repository_files() -> list[str]:
    """Tracked files, and new ones that git does not ignore: the state that the next commit will have."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("git is not installed")
    if done.returncode != 0:
        pytest.skip("this is not a git checkout")
    names = {name for name in done.stdout.decode().split("\0") if name}
    return sorted(name for name in names if (ROOT / name).is_file())


@pytest.fixture(scope="module")
def files() -> list[str]:
    return repository_files()


def test_the_top_level_holds_what_it_should(files):
    assert {name.split("/")[0] for name in files} - TOP_LEVEL == set()


def test_tests_stand_where_their_source_stands(files):
    lost = []
    for name in files:
        path = Path(name)
        if path.parts[0] != "tests" or not path.name.startswith("test_") or name in WITHOUT_SOURCE:
            continue
        source = ROOT.joinpath(*path.parts[1:-1], path.stem.removeprefix("test_"))
        if not (source.with_suffix(".py").exists() or (source / "__init__.py").exists()):
            lost.append(name)
    assert lost == []


def test_no_large_files_and_no_models(files):
    assert [name for name in files if (ROOT / name).stat().st_size > LARGEST_FILE_BYTES] == []
    assert [name for name in files if name.endswith(".gguf")] == []


def test_packaging_and_tests_are_no_packages(files):
    """A package of the name would hide the module ``packaging``, and tests/core would hide core."""
    wrong = [
        name for name in files if name.startswith(("packaging/", "tests/")) and name.endswith("__init__.py")
    ]
    assert wrong == []


def test_one_version_everywhere():
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[?v?(\d+\.\d+\.\d+)", changelog, re.MULTILINE)
    assert newest, "CHANGELOG.md has no heading like `## 0.1.0`"
    assert __version__ == pyproject["project"]["version"] == newest.group(1)


def test_no_paths_of_one_machine(files):
    """Nothing names the folder it was written in, or a home folder of this machine."""
    home = pwd.getpwuid(os.getuid()).pw_dir
    places = {"/work/" + part for part in ("main", "shared", ".library")}
    places |= {place for place in (str(ROOT), home + "/.") if place.count("/") >= 2}
    wrong = []
    for name in files:
        data = (ROOT / name).read_bytes()
        wrong += [f"{name}: {place}" for place in places if place.encode() in data]
    assert wrong == []


def test_sizes_are_printed_and_never_fail(files, capsys):
    counts: dict[str, dict[str, int]] = {}
    for name in files:
        if name.endswith(".py"):
            n_lines = len((ROOT / name).read_text(encoding="utf-8").splitlines())
            counts.setdefault(name.split("/")[0], {})[name] = n_lines
    with capsys.disabled():
        print()
        for part, sizes in counts.items():
            print(f"{part:<10} {sum(sizes.values()):>6} lines in {len(sizes)} files")
            for name, n_lines in sorted(sizes.items(), key=lambda item: -item[1]):
                if n_lines > IN_ONE_SITTING:
                    print(f"{'':<10} {n_lines:>6} {name}")
