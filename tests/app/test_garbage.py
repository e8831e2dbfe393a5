import gc
import threading
import weakref

from app.garbage import GuiGarbageCollector


class Node:
    def __init__(self):
        self.me = self


def test_cycles_are_collected_on_this_thread_alone(qapp):
    garbage = GuiGarbageCollector()
    try:
        lost = weakref.ref(Node())
        other = threading.Thread(target=lambda: [Node() for _ in range(5000)])
        other.start()
        other.join()
        assert lost() is not None
        garbage.collect()
        assert lost() is None
    finally:
        garbage.stop()
        gc.unfreeze()
    assert gc.isenabled()
