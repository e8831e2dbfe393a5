import pytest

from core.plan.whole import Cost, choose
from core.types import Context

FOUND, OPENING = Context((), 3, 0.0), Context((), 3, 0.0, is_opening=True)


@pytest.mark.parametrize(
    ("whole", "passages", "context", "kept_warm", "is_whole"),
    [
        (None, Cost(500, 500), FOUND, False, False),
        (None, Cost(500, 500), FOUND, True, False),
        (Cost(3000, 3000), Cost(500, 500), FOUND, True, True),
        (Cost(3000, 3000), Cost(500, 500), FOUND, False, False),
        (Cost(3000, 0), Cost(500, 500), FOUND, False, True),
        (Cost(3000, 500), Cost(500, 500), FOUND, False, False),
        (Cost(3000, 0), Cost(500, 0), FOUND, False, False),
        (Cost(900, 900), Cost(500, 500), OPENING, False, True),
        (Cost(3000, 3000), Cost(500, 500), OPENING, False, False),
        (Cost(0, 0), Cost(0, 0), OPENING, False, False),
    ],
)
def test_whole_where_it_is_wanted_or_leaves_less_to_read(whole, passages, context, kept_warm, is_whole):
    choice = choose(whole, passages, context, kept_warm=kept_warm)
    assert choice.whole == is_whole
    assert bool(choice.reason) == (is_whole or (kept_warm and whole is None))
