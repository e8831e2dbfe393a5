"""What stands behind the passages: as little as there is to say."""

from core.plan.annotate import annotation, annotation_of_whole
from core.types import Block, Passage, Place


def passage(number):
    return Passage(Block.of(f"Text {number}."), (Place(1, "a.txt", "/a", number, 0, 1, None),), 1.0, "", 0)


ONE, TWO = passage(1), passage(2)


def test_nothing_moved_is_a_line_of_sources():
    assert (
        annotation((ONE, TWO), (), moved=False)
        == f"Sources: {ONE.block.label}, {TWO.block.label} from a.txt."
    )
    assert annotation((), (), moved=False) == ""


def test_order_and_place_are_told_where_they_differ():
    lines = annotation((ONE, TWO), (TWO,), moved=True).splitlines()[1:]
    assert lines == [
        f"Given earlier in this conversation: {TWO.block.label}.",
        f"Most relevant first: {ONE.block.label} > {TWO.block.label}.",
    ]


def test_whole_documents_are_named_and_what_was_found_is_ranked():
    assert annotation_of_whole((ONE, TWO), ()) == "Sources: all of a.txt."
    assert annotation_of_whole((ONE, TWO), (TWO,)).endswith(f"Most relevant first: {TWO.block.label}.")
    assert annotation_of_whole((), ()) == ""
