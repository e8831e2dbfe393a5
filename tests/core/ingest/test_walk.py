import os

from core.ingest.walk import find_files


def names(found):
    return [path.name for path in found.files]


def test_folders_are_walked_and_named_files_always_taken(tmp_path):
    for name in ("b.txt", "a.md", "sub/c.html", "sub/deep/d.pdf", "x.bin", ".hidden.txt", ".git/e.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    found = find_files([tmp_path])
    assert names(found) == ["a.md", "b.txt", "c.html", "d.pdf"]
    assert (found.n_skipped, found.problems) == (1, ())
    named = find_files([tmp_path / "x.bin", tmp_path / ".hidden.txt", tmp_path / "a.md", tmp_path])
    assert names(named) == ["x.bin", ".hidden.txt", "a.md", "b.txt", "c.html", "d.pdf"]


def test_links_and_loops(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("x")
    (folder / "loop").symlink_to(folder)
    (folder / "self.txt").symlink_to(folder / "self.txt")
    (folder / "other.txt").symlink_to(folder / "a.txt")
    (folder / "gone.txt").symlink_to(folder / "nowhere.txt")
    outside = tmp_path / "outside.txt"
    outside.write_text("y")
    (folder / "outside.txt").symlink_to(outside)
    assert names(find_files([folder])) == ["a.txt", "outside.txt"]


def test_what_is_missing_is_a_problem(tmp_path):
    found = find_files([tmp_path / "missing.txt"])
    assert found.files == ()
    assert found.problems == ((tmp_path / "missing.txt", "This file does not exist."),)


def test_relative_paths_become_absolute(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("x")
    monkeypatch.chdir(tmp_path)
    (path,) = find_files([type(tmp_path)("a.txt")]).files
    assert path == tmp_path / "a.txt"
    assert os.fspath(path).startswith("/")


def test_what_programs_install_is_left_out_unless_it_is_named(tmp_path):
    for name in ("mine.py", "node_modules/theirs.js", "sub/__pycache__/x.py", "sub/other.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text")
    found = find_files([tmp_path])
    assert [path.name for path in found.files] == ["mine.py", "other.md"]
    assert [path.name for path in find_files([tmp_path / "node_modules"]).files] == ["theirs.js"]
