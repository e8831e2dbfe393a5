from hypothesis import given
from hypothesis import strategies as st

from core.ingest.matching import FoldedPage, folded_text

WORDS = [
    "alpha",
    "bravo",
    "charlie",
    "delta",
    "echo",
    "foxtrot",
    "golf",
    "hotel",
    "india",
    "juliet",
    "kilo",
    "lima",
]


def found(page, wanted, around=""):
    return "".join(page[index] for index in FoldedPage(page).find(wanted, around))


def test_white_space_hyphens_ligatures_and_accents_do_not_count():
    page = "The ﬁrst tenant’s agree-\x02\r\nment, re\u0301sume\u0301, ends."
    assert found(page, "first tenant’s agreement, résumé,") == "ﬁrsttenant’sagreement,resume,"


def test_of_two_places_the_one_in_the_passage_is_meant():
    page = "Notice is given in writing. One. Notice is given in writing. Two."
    indices = FoldedPage(page).find("Notice is given in writing.", "Notice is given in writing. Two.")
    assert indices[0] == page.rindex("Notice")
    assert FoldedPage(page).find("Notice is given in writing.")[0] == 0


def test_columns_drawn_across_are_found_line_by_line():
    left = [f"the left column says {word} here" for word in ("alpha", "bravo", "charlie")]
    right = [f"and on the right {word} is found" for word in ("delta", "echo", "foxtrot")]
    page = "".join(f"{one} {two}\n" for one, two in zip(left, right, strict=True))
    assert folded_text(found(page, "\n".join(left))) == folded_text("".join(left))
    assert folded_text(found(page, "\n".join(right[1:]))) == folded_text("".join(right[1:]))


def test_a_character_that_was_read_otherwise_leaves_no_hole():
    page = "The quick brown fox jumps over the l@zy dog and runs away."
    assert (
        found(page, "quick brown fox jumps over the lazy dog and runs")
        == "quickbrownfoxjumpsoverthel@zydogandruns"
    )


def test_what_is_not_on_the_page_is_not_found():
    page = "Something else stands here, and it is long enough to be searched."
    assert found(page, "A sentence about another matter altogether.") == ""
    assert found(page, "") == found(page, " - ") == found("", "text") == ""


def test_a_page_of_dots_is_searched_in_time():
    assert FoldedPage("." * 60_000).find("." * 2000 + "x" + "." * 2000)


@given(st.text(max_size=300), st.data())
def test_every_piece_of_a_page_is_found_whole(page, data):
    start = data.draw(st.integers(0, len(page)))
    end = data.draw(st.integers(start, len(page)))
    wanted = page[start:end]
    assert folded_text(found(page, wanted, page)) == folded_text(wanted)


@given(st.permutations(range(12)), st.sets(st.integers(0, 11), min_size=1))
def test_lines_are_found_in_whatever_order_they_were_drawn(order, wanted):
    lines = [f"{word * 3} {word} stands in line {word}" for word in WORDS]
    page = "\n".join(lines[number] for number in order)
    text = "\n".join(lines[number] for number in sorted(wanted))
    got = found(page, text)
    assert all(folded_text(lines[number]) in folded_text(got) for number in wanted)
    assert len(folded_text(got)) <= len(folded_text(text)) + 12
