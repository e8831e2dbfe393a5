import numpy as np
import pytest

from core.errors import DamagedState
from core.store.learned import ORDER, LearnedStore


class Counter:
    def __init__(self, n=0):
        self.n = n

    def state(self):
        return {"n": np.array(self.n, np.int64)}

    def restore(self, state):
        if state["n"].shape != ():
            raise DamagedState("no")
        self.n = int(state["n"])


def test_it_is_taken_up_where_it_was_left(db):
    store = LearnedStore(db)
    assert store.load("a", Counter(3)).n == 3, "nothing stored: it starts as it is"
    store.save("a", Counter(5))
    store.save("a", Counter(6))
    store.save(ORDER + "x", Counter(7))
    assert store.load("a", Counter()).n == 6
    assert store.names(ORDER) == {"x"}
    store.delete_all(ORDER)
    assert store.names(ORDER) == set()
    assert store.load("a", Counter()).n == 6


@pytest.mark.parametrize("damage", [b"", b"no archive", b"PK\x03\x04 cut", None])
def test_a_damaged_state_starts_afresh(db, damage):
    store = LearnedStore(db)
    store.save("a", Counter(5))
    if damage is None:
        good = bytearray(db.row("SELECT state FROM learned")[0])
        good[len(good) // 2] ^= 0xFF
        damage = bytes(good)
    db.run("UPDATE learned SET state = ?", [damage])
    assert store.load("a", Counter(1)).n in (1, 5)


def test_every_flipped_byte_is_survived(db):
    store = LearnedStore(db)
    store.save("a", Counter(5))
    (good,) = db.row("SELECT state FROM learned")
    for at in range(len(good)):
        db.run("UPDATE learned SET state = ?", [good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :]])
        assert store.load("a", Counter(1)).n in (1, 5)


def test_pickles_are_not_read(db, tmp_path):
    path = tmp_path / "evil.npz"
    np.savez(path, n=np.array([{"a": 1}], dtype=object), allow_pickle=True)
    store = LearnedStore(db)
    store.save("a", Counter(5))
    db.run("UPDATE learned SET state = ?", [path.read_bytes()])
    assert store.load("a", Counter(1)).n == 1
