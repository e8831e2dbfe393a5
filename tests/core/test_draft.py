"""Whatever happens to a conversation, its next prompt says all it refers to: real tokens, real database."""

import re
import shutil
import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from core.bench.contracts import contract, edited_clauses
from core.citations import cite
from core.config import Settings
from core.draft import draft, explain
from core.engine.llama import LlamaEngine
from core.engine.protocol import CancelFlag
from core.errors import KnownError
from core.first_word import learn_rate
from core.ingest.library import ingest
from core.pipeline import answer
from core.plan import SHORTEST_PART, expand
from core.prompt import lay_out
from core.store.database import open_database
from core.text import sentences
from core.types import Answer, Block, Context, FinishReason, Question, RequestMetrics, Scope, SegmentKind
from core.upkeep import Upkeep
from core.workbench import Workbench

pytestmark = pytest.mark.model
REFERENCE = re.compile(
    r'\[see (?P<label>\w+)(?:(?: from|:) "(?P<opening>[^"]*)")?'
    r'(?:(?: up to| …) (?P<before>before )?"(?P<closing>[^"]*)")?\]'
)


def text_of(bench, segment):
    return b"".join(bench.engine.token_bytes(int(token)) for token in segment.tokens).decode()


def read_blocks(bench, prompt):
    """The full text of every block of a prompt, from its tokens alone, in one line each."""
    shown, full = {}, {}
    for segment in prompt.segments:
        if segment.kind is not SegmentKind.BLOCK:
            continue
        label, _, text = text_of(bench, segment).removesuffix("\n\n").partition("\n")

        def follow(match):
            source = shown[f"[{match['label']}]"]
            begin, end = 0, len(source)
            if match["opening"]:
                assert source.count(match["opening"]) == 1
                begin = source.index(match["opening"])
            if match["closing"]:
                end = source.index(match["closing"], begin)
                end = end if match["before"] else end + len(match["closing"])
            return source[begin:end].rstrip(" ") if match["before"] else source[begin:end]

        shown[label] = text.replace("\n", " ")
        full[segment.block_id] = REFERENCE.sub(follow, shown[label])
    return full


def said(text="It is said."):
    return Answer(text, (), (), (), 0, FinishReason.STOP, RequestMetrics(), (), (), ())


class Documents:
    """Two versions of a contract, each a file, which can be edited and removed."""

    def __init__(self, folder, bench):
        self.folder = folder
        self.bench = bench
        clauses = contract(6_000, seed=3)
        self.versions = {"one.txt": clauses, "two.txt": edited_clauses(clauses, 0.2, 4)}
        for name, text in self.versions.items():
            self.write(name, text)

    def write(self, name, clauses):
        (self.folder / name).write_text("".join(clauses), encoding="utf-8")
        ingest([self.folder], self.bench.db, cancel=threading.Event(), progress=lambda _: None)
        Upkeep(self.bench.db, self.bench, lambda: None).forget_missing()

    def passages(self):
        whole = self.bench.documents.whole(Scope(), 100_000)
        return whole or ()


@pytest.fixture(scope="module")
def engine(tiny_model):
    engine = LlamaEngine(tiny_model, Settings(n_ctx=4096))
    yield engine
    engine.close()


@pytest.fixture
def bench(engine, tmp_path):
    with open_database(tmp_path) as db:
        yield Workbench(engine, db, dedup="content")


@pytest.fixture
def documents(bench, tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    return Documents(folder, bench)


def context_of(passages):
    return Context(tuple(passages), len(passages), 0.0)


def drafted(bench, passages, conversation=None, known=()):
    """The draft of a question about these passages, checked against what they say.

    ``known``: the text of every block that an earlier turn may hold, by id.
    """
    made = draft(bench, Question("What is due?", conversation, max_tokens=8), context_of(passages))
    full = read_blocks(bench, made.prompt)
    whole = [block for block in made.plan.blocks if block.id != made.plan.excerpt]
    for block in whole:
        assert full[block.id] == block.text.replace("\n", " ")
    for block in made.plan.references:
        assert full[block.id] == block.text.replace("\n", " ")
    for id_, text in dict(known).items():
        assert full.get(id_, text) == text
    held = [Block(id_, text) for id_, text in bench.documents.texts(list(full)).items()]
    assert expand(made.plan.forms, held)[: len(whole)] == tuple(block.text for block in whole)
    if bench.dedup == "content":
        bench.dedup = "blocks"
        plain = draft(bench, Question("What is due?", conversation, max_tokens=8), context_of(passages))
        bench.dedup = "content"
        if plain.plan.blocks == made.plan.blocks:
            assert made.prompt.n_tokens <= plain.prompt.n_tokens, "annotation included"
    return made


def test_versions_of_a_contract_are_shortened_and_it_is_said(bench, documents):
    passages = documents.passages()
    made = drafted(bench, passages)
    assert made.plan.n_shortened
    whole = sum(len(segment.tokens) for segment in bench.segments_of(made.plan.blocks).values())
    sent = sum(len(segment.tokens) for segment in made.plan.segments)
    assert made.plan.n_deduplicated_tokens == made.plan.n_shortened_tokens == whole - sent > 0
    assert f"{made.plan.n_shortened} shortened: {whole - sent:,} tokens less" in explain(bench, made)[-1]
    bench.dedup = "blocks"
    plain = draft(bench, Question("What is due?", max_tokens=8), context_of(passages))
    assert made.prompt.n_tokens < plain.prompt.n_tokens
    assert not any("shortened" in sentence for sentence in explain(bench, plain))


def test_a_shortened_passage_is_cited_by_its_whole_text(bench, documents):
    made = drafted(bench, documents.passages())
    form = next(form for form in made.plan.forms if form.references)
    passage = next(p for p in made.plan.passages if p.block.id == form.block_id)
    start = passage.block.text.index(". ", 200) + 2
    sentence = passage.block.text[start : passage.block.text.index(".\n", start) + 1]
    citations, _ = cite("What is due?", sentence, [passage])
    assert [one.block_id for one in citations] == [passage.block.id]


def test_the_same_prefix_is_the_same_segments_and_is_reused(bench, documents):
    passages = documents.passages()
    list(answer(bench, 1, Question("What is due?", max_tokens=8), context_of(passages), CancelFlag()))
    again = list(answer(bench, 1, Question("And when?", max_tokens=8), context_of(passages), CancelFlag()))
    metrics = again[-1].turn.answer.metrics
    assert metrics.n_deduplicated_tokens > 0
    assert metrics.n_prefilled_tokens < 200, "all but the question was there"


def test_reused_shortened_prompts_give_the_logits_of_a_cold_run(bench, documents):
    passages = documents.passages()
    orders = [passages, passages[::2], [*passages[3:], *passages[:3]], passages[1:], passages]
    warm = []
    for number, chosen in enumerate(orders):
        made = drafted(bench, chosen)
        for _ in bench.cache.prefill(made.prompt, CancelFlag()):
            pass
        warm.append((made, bench.engine.logits().copy()))
        assert made.plan.n_shortened, number
    for made, logits in warm:
        bench.cache.forget_everything()
        for _ in bench.cache.prefill(made.prompt, CancelFlag()):
            pass
        assert np.array_equal(bench.engine.logits(), logits)


def test_other_orders_follow_the_path_of_shortened_blocks(bench, documents):
    passages = documents.passages()
    list(answer(bench, 1, Question("What is due?", max_tokens=8), context_of(passages), CancelFlag()))
    other = [*passages[len(passages) // 2 :], *passages[: len(passages) // 2]]
    again = list(answer(bench, 1, Question("And when?", max_tokens=8), context_of(other), CancelFlag()))
    metrics = again[-1].turn.answer.metrics
    assert metrics.n_deduplicated_tokens > 0
    assert metrics.n_prefilled_tokens < 300, "all but the question was there"


def test_what_is_cached_whole_stays_whole(bench, documents):
    passages = documents.passages()
    bench.dedup = "blocks"
    list(answer(bench, 1, Question("What is due?", max_tokens=8), context_of(passages), CancelFlag()))
    bench.dedup = "content"
    made = drafted(bench, passages)
    assert not made.plan.n_shortened


def test_a_time_is_kept_by_leaving_out_what_was_not_read_before(bench, documents):
    passages = documents.passages()[:6]
    cached = passages[4:]
    list(answer(bench, 1, Question("What is due?", max_tokens=8), context_of(cached), CancelFlag()))
    rate = bench.cache.rates.prefill_token_s.value
    tokens = {id_: len(s.tokens) for id_, s in bench.segments_of([p.block for p in passages]).items()}
    bench.first_word_s = rate * (tokens[passages[0].block.id] + 200) / 0.8
    made = drafted(bench, passages)
    sent = {block.id for block in made.plan.blocks}
    assert {passage.block.id for passage in cached} <= sent, "what is cached rides free"
    assert passages[0].block.id in sent, "the most relevant of the others"
    assert made.plan.n_over_time == 6 - len(sent) > 0
    assert any("passages left out" in note and ", so that" in note for note in made.notes)
    assert not made.plan.n_left_out
    bench.first_word_s = 0.0
    assert not drafted(bench, passages).plan.n_over_time


def test_a_time_holds_from_the_first_question_on(bench, documents):
    passages = documents.passages()
    assert bench.cache.rates.prefill_token_s.value is None
    learn_rate(bench, CancelFlag())
    assert bench.cache.rates.prefill_token_s.value is None, "no time is set: nobody waits for that"
    bench.first_word_s = 0.001
    learn_rate(bench, CancelFlag())
    question = Question("What is due?", max_tokens=2)
    done = list(answer(bench, 1, question, context_of(passages), CancelFlag()))[-1]
    assert len(done.turn.answer.passages) == 1, "of nothing there is no answer"
    assert any("left out" in note for note in done.turn.answer.notes)


def test_of_what_there_is_no_time_for_the_part_that_matters_is_read(bench, documents):
    passages = documents.passages()[:3]
    list(answer(bench, 1, Question("Hello?", max_tokens=2), context_of(()), CancelFlag()))
    text = passages[0].block.text
    quote = next(text[a:b] for a, b in sentences(text) if a > len(text) // 2)
    best = replace(passages[0], quote=quote, quote_start=text.index(quote))
    bench.first_word_s = bench.cache.rates.prefill_s(0, 400)
    question = Question("What is due?", max_tokens=8)
    made = draft(bench, question, context_of([best]))
    assert explain(bench, made) == ["Of one passage of “one.txt” the part around its best sentence was read."]
    assert made.notes == [
        f"1 passage read in part, so that the answer begins within {bench.first_word_s:g} s."
    ]
    done = list(answer(bench, 2, question, context_of((best, *passages[1:])), CancelFlag()))[-1]
    turn = next(iter(bench.conversations.turns(done.conversation_id)))
    ((_, ledger),) = bench.conversations.ledger(done.conversation_id)
    (part,) = [segment for segment in ledger if segment.kind is SegmentKind.EXCERPT]
    said = text_of(bench, part)
    assert quote in said
    assert said.startswith(f"[{best.block.label}]\n")
    assert 64 <= len(part.tokens) < len(bench.segments_of([best.block])[best.block.id].tokens)
    assert best.block.id in {passage.block.id for passage in turn.answer.passages}

    # It does not count as being there: asked again without haste, all of it is read.
    assert best.block.id not in bench.conversations.given(done.conversation_id)
    bench.first_word_s = 0.0
    again = draft(bench, replace(question, conversation_id=done.conversation_id), context_of([best]))
    assert best.block.id in {block.id for block in again.plan.blocks}
    assert not again.plan.excerpt

    # And it goes with its conversation, and with its document.
    prompt = lay_out([bench.writer.head(), part], bench.root_of(""))
    assert len(bench.cache.locate(prompt)) == len(prompt.chunks)
    Upkeep(bench.db, bench, lambda: None).delete_conversation(done.conversation_id)
    assert len(bench.cache.locate(prompt)) < len(prompt.chunks)
    list(answer(bench, 3, replace(question), context_of([best]), CancelFlag()))
    assert best.block.id in bench.cache.block_ids()
    bench.forget_blocks([best.block.id])
    assert best.block.id not in bench.cache.block_ids()


def test_where_there_is_no_time_at_all_no_whole_passage_is_read(bench, documents):
    first, *others = documents.passages()[:4]
    done = list(answer(bench, 1, Question("Hello?", max_tokens=8), context_of([first]), CancelFlag()))[-1]
    bench.first_word_s = 0.0001  # less than the last answer takes, which was not read again
    question = Question("What is due?", done.conversation_id, max_tokens=8)
    made = draft(bench, question, context_of([others[0], first]))
    assert made.plan.blocks == (), "an earlier turn gave what there is to answer from"
    assert made.plan.references == (first.block,)
    made = draft(bench, question, context_of(others))
    assert [block.id for block in made.plan.blocks] == [made.plan.excerpt] == [others[0].block.id]
    assert len(made.plan.segments[0].tokens) <= SHORTEST_PART


def test_the_policy_gives_a_reason_and_can_leave_alone(bench, documents):
    bench.dedup = "auto"
    passages = documents.passages()
    made = draft(bench, Question("What is due?", max_tokens=8), context_of(passages))
    assert made.plan.n_shortened, "it saves hundreds of tokens"
    assert "shortened" in made.reasons[0]
    few = draft(bench, Question("What is due?", max_tokens=8), context_of(passages[:2]))
    assert not few.plan.n_shortened
    assert "relevance order" in few.reasons[0]


def leave_as_found(bench, *titles, **switches):
    """Put these documents into a collection that leaves passages as found. The collection's scope."""
    number = bench.collections.create("Leases")
    ids = [one.id for one in bench.documents.list_documents() if one.title in titles]
    bench.collections.assign(ids, number)
    bench.collections.change(replace(bench.collections.find(number), as_found=True, **switches))
    return Scope(collection_id=number)


def only_in(passages, title):
    return [passage for passage in passages if {place.title for place in passage.places} == {title}]


@pytest.mark.parametrize("dedup", ["content", "auto"])
def test_passages_of_a_collection_as_found_are_neither_moved_nor_shortened(bench, documents, dedup):
    bench.dedup = dedup
    passages = documents.passages()
    list(answer(bench, 1, Question("What is due?", max_tokens=8), context_of(passages), CancelFlag()))
    bench.cache.rates.prefill_token_s.value = 0.1  # seconds: whatever is saved is worth it
    other = [*passages[len(passages) // 2 :], *passages[: len(passages) // 2]]
    question = Question("And when?", max_tokens=8)
    before = draft(bench, question, context_of(other))
    assert before.plan.n_shortened, "else this shows nothing"
    assert dedup == "auto" or before.plan.moved
    scope = leave_as_found(bench, "one.txt")
    for asked in (question, replace(question, scope=scope)):
        made = draft(bench, asked, context_of(other))
        assert made.plan.blocks == tuple(passage.block for passage in other)
        assert (made.plan.moved, made.plan.n_shortened, made.plan.riders) == (False, 0, ())
        assert made.reasons == ["Passages stand as found: the collection “Leases” is set so."]
        full = {s.block_id: text_of(bench, s) for s in made.prompt.segments if s.block_id}
        assert all(passage.block.text in full[passage.block.id] for passage in other)
    bench.first_word_s = bench.cache.rates.prefill_s(0, 700)
    made = draft(bench, question, context_of(other))
    assert made.plan.n_over_time
    assert not made.plan.excerpt, "left out, not shortened"
    bench.first_word_s = 0.0
    bench.collections.change(replace(bench.collections.find(scope.collection_id), as_found=False))
    after = draft(bench, question, context_of(other))
    assert after.plan.forms == before.plan.forms
    assert after.prompt.chunks[-1].key == before.prompt.chunks[-1].key, "nothing had to leave the cache"


def test_other_documents_are_not_left_as_found_unless_they_stand_in_its_conversation(bench, documents):
    passages = documents.passages()
    found, other = only_in(passages, "one.txt")[:2], only_in(passages, "two.txt")[:4]
    leave_as_found(bench, "one.txt")
    list(answer(bench, 1, Question("What?", max_tokens=8), context_of(other[::-1]), CancelFlag()))
    assert drafted(bench, other).plan.moved, "the cached path comes first"
    events = list(answer(bench, 1, Question("What is due?", max_tokens=8), context_of(found), CancelFlag()))
    made = drafted(bench, [*other, *found], events[-1].conversation_id)
    assert made.plan.blocks == tuple(passage.block for passage in other)
    assert set(made.plan.references) == {passage.block for passage in found}, "they are named, not repeated"
    assert not made.plan.moved
    assert made.reasons == ["Passages stand as found: the collection “Leases” is set so."]


def test_a_collection_as_found_is_read_whole_only_where_it_is_kept_warm(engine, bench, documents):
    (documents.folder / "two.txt").write_text("Dogs are not allowed.\n" * 9, encoding="utf-8")
    documents.write("one.txt", documents.versions["one.txt"])
    bench = Workbench(engine, bench.db, ram_budget=50 << 20)
    bench.rules = replace(bench.rules, ride=False)  # else cached blocks ride, which is as good here
    passages = bench.documents.whole(Scope(), 100_000)
    list(answer(bench, 1, Question("What?", max_tokens=8), context_of(passages), CancelFlag()))
    some = context_of([passages[-1], passages[2]])
    library = Question("What is due?", max_tokens=8)
    only_dogs = context_of(only_in(passages, "two.txt"))
    for context in (some, only_dogs):
        assert draft(bench, library, context).plan.is_whole, "it was read before and leaves less to read"
    scope = leave_as_found(bench, "one.txt", keep_warm=True)
    made = draft(bench, library, some)
    assert made.plan.blocks == tuple(passage.block for passage in some.passages)
    assert not draft(bench, library, only_dogs).plan.is_whole, "one of all documents is of the collection"
    contract_alone = replace(library, scope=scope)
    inside = context_of(only_in(passages, "one.txt")[-1:])
    warm = draft(bench, contract_alone, inside)
    assert warm.plan.is_whole
    assert warm.reasons == ["Read whole, since it is kept warm."]
    bench.collections.change(replace(bench.collections.find(scope.collection_id), keep_warm=False))
    assert not draft(bench, contract_alone, inside).plan.is_whole


def test_off_means_that_nothing_is_referenced(bench, documents):
    bench.dedup = "off"
    passages = documents.passages()[:2]
    events = list(
        answer(bench, 1, Question("What is due?", max_tokens=8), context_of(passages), CancelFlag())
    )
    made = draft(bench, Question("And when?", events[-1].conversation_id, max_tokens=8), context_of(passages))
    assert len(made.plan.blocks) == 2
    assert not made.plan.references


def test_a_removed_document_leaves_neither_references_nor_forms(bench, documents):
    passages = documents.passages()
    events = list(
        answer(bench, 1, Question("What is due?", max_tokens=8), context_of(passages), CancelFlag())
    )
    shortened = {form.block_id for form in drafted(bench, passages).plan.forms if form.references}
    assert shortened
    document = next(one for one in bench.documents.list_documents() if one.title == "one.txt")
    Upkeep(bench.db, bench, lambda: None).remove_document(document.id)
    assert not bench._shortened
    assert not bench.cache.block_ids() & shortened, "what stood behind the removed text went with it"
    made = drafted(bench, documents.passages(), events[-1].conversation_id)
    assert made.is_new_branch
    assert {s.block_id for s in made.branch} == {""}


class Conversations(RuleBasedStateMachine):
    """Turns of two conversations, edits and removals of documents, full contexts, other settings, in any order."""

    def __init__(self, engine, folder):
        super().__init__()
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "files").mkdir(parents=True)
        self.context = open_database(folder)
        self.bench = Workbench(engine, self.context.__enter__(), dedup="content")
        self.documents = Documents(folder / "files", self.bench)
        self.conversations = []
        self.known = {}

    @initialize()
    def two_conversations(self):
        self.conversations = [self.bench.conversations.create("Equal words") for _ in range(2)]
        for id_ in self.conversations:
            self.turn(id_, documents_first=True)

    def turn(self, id_, chosen=None, *, documents_first=False):
        passages = self.documents.passages()
        if chosen is not None:
            passages = [passages[n % len(passages)] for n in chosen] if passages else []
        elif documents_first:
            passages = passages[:4]
        self.known.update((p.block.id, p.block.text.replace("\n", " ")) for p in passages)
        has_turns = bool(self.bench.conversations.turns(id_))
        made = drafted(self.bench, passages, id_ if has_turns else None, self.known)
        ledger = (*made.added, self.bench.writer.answer([5, 6, 7]))
        if made.is_new_branch:
            ledger = (*made.branch, *ledger)
        result = replace(said(), passages=made.plan.passages)
        self.bench.conversations.append_turn(
            id_, "What is due?", result, ledger, self.bench.engine.tokenizer_id
        )

    @rule(which=st.integers(0, 1), chosen=st.lists(st.integers(0, 30), min_size=1, max_size=8))
    def ask(self, which, chosen):
        self.turn(self.conversations[which], chosen)

    @rule(which=st.integers(0, 1))
    def fill_up(self, which):
        """A long turn: the next one may have to set others aside."""
        self.turn(self.conversations[which])

    @rule(name=st.sampled_from(["one.txt", "two.txt"]), seed=st.integers(0, 3))
    def edit(self, name, seed):
        self.documents.write(name, edited_clauses(self.documents.versions[name], 0.1, seed))

    @precondition(lambda self: len(self.bench.documents.list_documents()) > 1)
    @rule(first=st.booleans())
    def remove(self, first):
        document = self.bench.documents.list_documents()[0 if first else -1]
        (self.folder / "files" / document.title).unlink()
        Upkeep(self.bench.db, self.bench, lambda: None).remove_document(document.id)

    @rule(dedup=st.sampled_from(["blocks", "content", "content"]))
    def change_the_setting(self, dedup):
        self.bench.dedup = dedup

    @rule(seconds=st.sampled_from([0.0, 0.4, 0.8, 2.0]))
    def be_in_a_hurry(self, seconds):
        self.bench.cache.rates.prefill_token_s.value = 0.001
        self.bench.first_word_s = seconds

    def teardown(self):
        self.context.__exit__(None, None, None)


def test_no_turn_ever_refers_to_what_is_not_there(engine, tmp_path):
    run_state_machine_as_test(
        lambda: Conversations(engine, tmp_path / "machine"),
        settings=settings(max_examples=12, stateful_step_count=12, deadline=None),
    )


def test_a_deleted_conversation_is_not_continued(bench):
    with pytest.raises(KnownError):
        draft(bench, Question("What?", 12345), context_of(()))
