import os

from core.ingest.places import identity, is_in_its_place, lies_in, look_at_mounts
from core.store.folders import FolderRecord


def test_identity(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "file").write_text("text")
    assert identity(tmp_path / "a") == identity(tmp_path / "link") != identity(tmp_path)
    assert identity(tmp_path / "file") == identity(tmp_path / "missing") == ""


def test_a_path_is_in_its_place_while_all_that_it_lies_in_are_the_same(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    record = FolderRecord(str(tmp_path), None, identity(tmp_path), {str(inner): identity(inner)})
    inside, beside = str(inner / "a.txt"), str(tmp_path / "inner2.txt")
    assert is_in_its_place(inside, [record])
    os.rename(inner, tmp_path / "away")  # noqa: PTH104
    assert not is_in_its_place(inside, [record])
    inner.mkdir()
    assert not is_in_its_place(inside, [record])
    assert is_in_its_place(beside, [record])
    other = FolderRecord(str(tmp_path), None, "1:1")
    assert not is_in_its_place(beside, [other])
    assert is_in_its_place(beside, [FolderRecord(str(tmp_path), None, "")])
    assert is_in_its_place("/elsewhere/a.txt", [other])


def test_a_mount_with_nothing_to_lose_is_forgotten(tmp_path):
    usb = str(tmp_path / "usb")
    record = FolderRecord(str(tmp_path), None, "1:1", {usb: "2:2"})
    kept = look_at_mounts(record, {}, [f"{usb}/a.txt"])
    assert (kept.seen, kept.away, kept.unsure) == ({usb: "2:2"}, {usb}, {usb})
    assert not look_at_mounts(record, {}, [f"{usb}2/a.txt"]).seen
    assert lies_in(f"{usb}/a.txt", kept.away)
    assert not lies_in(f"{usb}2/a.txt", kept.away)
