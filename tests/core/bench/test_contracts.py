"""Made-up contracts are the same every time, and differ where they are said to."""

from core.bench.contracts import contract, edited_clauses, edited_lines, without_newlines


def test_a_contract_is_reproducible_and_long_enough():
    clauses = contract(47_000, seed=1)
    assert 47_000 <= len("".join(clauses)) < 49_000
    assert clauses == contract(47_000, seed=1)
    assert clauses != contract(47_000, seed=2)
    assert not any("{" in clause for clause in clauses)


def test_so_many_clauses_differ_as_asked():
    clauses = contract(20_000)
    edited = edited_clauses(clauses, 0.2, seed=5)
    kept = set(clauses) & set(edited)
    expected = 0.8 * len(clauses)
    assert expected - 3 <= len(kept) <= expected
    assert len(edited) == len(clauses)


def test_so_many_lines_differ_as_asked():
    text = "".join(contract(20_000))
    edited = edited_lines(text, 0.05)
    one, two = text.split("\n"), edited.split("\n")
    n_full = sum(len(line.split()) > 2 for line in one)
    assert sum(a != b for a, b in zip(one, two, strict=True)) == round(0.05 * n_full)
    assert "\n" not in without_newlines(edited)
