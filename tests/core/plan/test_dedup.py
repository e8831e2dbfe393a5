"""What a block shows, with its references read as a reader would, is what the document says, byte for byte."""

import re
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BugError
from core.plan.dedup import Form, Reference, expand, shorten, split_held, whole
from core.types import Block, Passage, label_of

REFERENCE = re.compile(
    r'\[see (?P<label>\w+)(?:(?: from|:) "(?P<opening>[^"]*)")?(?:(?: up to| …) (?P<before>before )?"(?P<closing>[^"]*)")?\]'
)


def in_one_line(text):
    return text.replace("\n", " ")


def read(prompt):
    """The full texts of ``(label, shown)``, in order: references are followed by their words alone.

    A line break is a space, as it is to whoever reads.
    """
    shown_so_far, full = {}, []
    for label, shown in prompt:

        def follow(match):
            text = shown_so_far[match["label"]]
            begin, end = 0, len(text)
            if match["opening"]:
                assert text.count(match["opening"]) == 1, "the first words stand there once"
                begin = text.index(match["opening"])
            if match["closing"]:
                end = text.index(match["closing"], begin)
                end = end if match["before"] else end + len(match["closing"])
            assert "[see" not in text[begin:end], "what is referred to is itself shown"
            return text[begin:end].rstrip(" ") if match["before"] else text[begin:end]

        full.append(in_one_line(REFERENCE.sub(follow, in_one_line(shown))))
        shown_so_far[label] = in_one_line(shown)
    return full


def check(held, blocks, forms):
    texts = [block.text for block in blocks]
    assert list(expand(forms, held)) == texts
    prompt = [(block.label, block.text) for block in held]
    assert read([*prompt, *((form.label, form.shown) for form in forms)])[len(held) :] == [
        in_one_line(text) for text in texts
    ]
    before = {block.id for block in held}
    for form in forms:
        assert {reference.source for reference in form.references} <= before
        before.add(form.block_id)
    return forms


SENTENCES = [
    f"{who} {what} {how}."
    for who in ("The tenant", "The landlord of flat 3", "Nobody", "租户在每月第一天之前")
    for what in ("pays the rent of 900 euros", "pays the rent of 950 euros", "repairs the boiler, 支付租金")
    for how in ("in advance and without being asked for it", "within 14 days of a letter that asks for it")
]
pieces = st.lists(
    st.sampled_from(SENTENCES)
    | st.sampled_from(
        ["name | amount", "Ada | 9100", "Bob | 1007", "## Rent", "", "x = rows[0]", "5021|Revenue"]
    )
    | st.text(st.sampled_from("ab0 \n.é中"), max_size=12),
    min_size=1,
    max_size=14,
)
texts = st.builds(
    lambda parts, glue: glue.join(parts), pieces, st.sampled_from(["\n", " ", "\n\n", "  \n   "])
)


def distinct(found):
    blocks = {block.id: block for block in map(Block.of, found) if block.text}
    labels = {}
    for block in blocks.values():
        labels.setdefault(block.label, block)
    return list(labels.values())


@settings(max_examples=300)
@given(
    st.lists(texts, max_size=3).map(distinct),
    st.lists(texts, max_size=6).map(distinct),
    st.sets(st.integers(0, 5)),
)
def test_nothing_is_lost_and_every_reference_is_clear(held, blocks, stay_whole):
    names = {block.label for block in held}
    blocks = [block for block in blocks if block.label not in names]
    stay_whole = {n for n in stay_whole if n < len(blocks)}
    forms = check(held, blocks, shorten(held, blocks, stay_whole=stay_whole))
    assert all(not forms[n].references for n in stay_whole)
    assert all(len(form.shown) <= len(block.text) for form, block in zip(forms, blocks, strict=True))
    for n in range(len(blocks)):
        fewer = {one for one in stay_whole if one < n}
        assert forms[:n] == shorten(held, blocks[:n], stay_whole=fewer), "equal prefixes, equal forms"


def versions(text, old, new):
    one, two = Block.of("First version.\n" + text), Block.of("Second version.\n" + text.replace(old, new))
    (first, second) = check((), (one, two), shorten((), (one, two)))
    assert first == whole(one)
    return second


CLAUSES = "\n".join(
    f"{n}. {subject} is kept in good repair by the tenant, who tells the landlord of any damage at once and"
    f" bears the cost of it up to the amount of {n * 50} euros a year."
    for n, subject in enumerate(("The boiler", "The garden", "The cellar", "The roof", "The meter"), 1)
)


def test_a_line_in_which_an_amount_differs_stands_in_both():
    second = versions(CLAUSES, "150 euros", "155 euros")
    assert "3. The cellar is kept in good repair" in second.shown
    assert "155 euros a year." in second.shown
    assert len(second.references) == 2
    assert len(second.shown) < len(CLAUSES) / 2


def test_a_sentence_in_which_an_amount_differs_stands_in_both_without_newlines():
    second = versions(CLAUSES.replace("\n", " "), "150 euros", "155 euros")
    assert "The cellar is kept in good repair" in second.shown
    assert "155 euros a year." in second.shown
    assert len(second.references) == 2


def test_text_without_sentences_is_shortened_too():
    text = " ".join(f"word{n * n % 97} other{n}" for n in range(200))
    second = versions(text, "other150", "another150")
    assert "another150" in second.shown
    assert len(second.shown) < len(text) / 2


def test_a_number_at_the_beginning_of_a_line_is_content():
    rest = "|Revenue of the year, audited, in thousands of euros, without the discontinued operations\n"
    one = Block.of("".join(f"{5021 + n}{rest}" for n in range(4)))
    two = Block.of("".join(f"{1007 + n}{rest}" for n in range(4)))
    forms = check((), (one, two), shorten((), (one, two)))
    assert forms[1].shown == two.text


def test_a_table_keeps_its_header():
    rows = [
        f"Person {n} | {n * 37 % 1000} euros | paid in month {n % 12} by bank transfer" for n in range(12)
    ]
    table = "name | amount | when\n--- | --- | ---\n" + "\n".join(rows)
    second = versions(table, "259 euros", "260 euros")
    lines = second.shown.splitlines()
    assert lines[1:3] == ["name | amount | when", "--- | --- | ---"]
    assert any("260 euros" in line for line in lines)
    assert second.references
    same = versions("Before it.\n" + table + "\nAfter it.", "Before", "Above")
    own = "".join(part for part in same.parts if isinstance(part, str))
    assert "|" not in own, "a table that is referred to as a whole brings its header along"


def test_code_with_an_index_is_not_a_list():
    code = "def first(rows):\n    if not rows:\n        raise ValueError('no rows were given to look at')\n"
    code += (
        "    value = rows[0]\n    other = rows[1]\n    return value if value.size > other.size else other\n"
    )
    second = versions(code * 1 + CLAUSES, "rows[1]", "rows[2]")
    assert "other = rows[2]" in second.shown


def test_it_never_refers_to_its_own_text():
    one = Block.of(f"{CLAUSES}\n\n{CLAUSES}")
    assert shorten((), (one,)) == (whole(one),)
    assert shorten((Block.of("Something else."),), (one,)) == (whole(one),)


def test_a_whole_block_within_a_longer_one_is_named_by_its_label_alone():
    one = Block.of(CLAUSES)
    two = Block.of(f"Annex.\n{CLAUSES}\nEnd of it.")
    (_, second) = check((), (one, two), shorten((), (one, two)))
    assert second.shown == f"Annex.\n[see {one.label}]\nEnd of it."


def test_what_a_reference_replaced_is_not_referred_to():
    one, two, three = (Block.of(f"Version {n}.\n{CLAUSES}\nSigned on day {n}.") for n in range(3))
    forms = check((), (one, two, three), shorten((), (one, two, three)))
    assert {reference.source for form in forms for reference in form.references} == {one.id}
    alone = check((), (two, three), shorten((), (two, three)))
    assert {reference.source for form in alone for reference in form.references} == {two.id}


def test_a_label_that_names_two_blocks_is_not_referred_to():
    seen = {}
    for n in count():
        text = f"Number {n}.\n{CLAUSES}"
        if label_of(text) in seen:
            break
        seen[label_of(text)] = text
    one, two = Block.of(seen[label_of(text)]), Block.of(text)
    assert one.label == two.label
    three = Block.of(f"Copy.\n{CLAUSES}")
    assert shorten((), (one, three))[1].references
    assert not any(form.references for form in shorten((), (one, two, three)))
    forms = shorten((), (one, three, two))
    assert forms[1].references, "it was clear when it was written"
    assert {reference.source for reference in forms[2].references} <= {three.id}
    assert not shorten((), (one, three), unclear={one.label})[1].references


def test_where_the_last_words_are_common_the_next_ones_say_where_it_ends():
    text = "".join(
        f"{n}. {name} is kept in repair by the tenant at all times and at no cost to the landlord.\n"
        for n, name in enumerate("ABCDEF")
    )
    one, two = Block.of(f"One.\n{text}Signed on a Monday, by both."), Block.of(f"Two.\n{text}Not signed.")
    (_, second) = check((), (one, two), shorten((), (one, two)))
    assert second.shown.endswith('… before "Signed on a"]\nNot signed.')


def test_short_agreement_is_repeated():
    one = Block.of("One thing.\nThe rent is due on the first day.\nAnother thing that is said.")
    two = Block.of("Two things.\nThe rent is due on the first day.\nSomething else altogether.")
    assert shorten((), (one, two)) == (whole(one), whole(two))


def test_a_dangling_reference_is_a_bug():
    one, two = Block.of(f"A.\n{CLAUSES}"), Block.of(f"B.\n{CLAUSES}")
    forms = shorten((one,), (two,))
    assert expand(forms, (one,)) == (two.text,)
    with pytest.raises(BugError):
        expand(forms)
    with pytest.raises(BugError):
        expand((Form(two.id, two.label, (Reference(one.id, 0, len(one.text) + 1, "[see x]"),)),), (one,))


def test_a_block_found_twice_is_put_once():
    one, two = (Passage(Block.of(text), (), 1.0, "", 0) for text in ("One.", "Two."))
    assert split_held((one, two, one), frozenset()) == ((one, two), ())
    assert split_held((one, two, one), {one.block.id}) == ((two,), (one,))
