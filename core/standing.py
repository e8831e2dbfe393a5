"""Where the text of a prompt's blocks stands, for those who read the answer.

A plan names some passages instead of repeating them, shortens others, and lets blocks ride along that
nobody asked for. Each of them is told with what is needed to open its text.
"""

from collections.abc import Mapping, Sequence

from core.plan import Form, Plan
from core.types import Place, Scope, Spot, Standing, Stands
from core.workbench import Workbench


def standings(bench: Workbench, conversation_id: int | None, plan: Plan) -> tuple[Standing, ...]:
    """Passages that an earlier turn gave, then shortened ones and riders, each in the prompt's order.

    A block whose document was removed or edited meanwhile is left out: there is nothing to open.
    """
    shortened = [form for form in plan.forms if form.references]
    if not (plan.references or shortened or plan.riders):
        return ()
    places = {passage.block.id: passage.place for passage in plan.quotable}
    sources = {reference.source for form in shortened for reference in form.references} - places.keys()
    if sources:  # blocks of earlier turns, that may lie outside what this question is about
        found = bench.documents.places_of(sorted(sources), Scope())
        places |= {block_id: place for block_id, them in found.items() if (place := _open_one(bench, them))}
    given = (
        bench.conversations.given(conversation_id) if plan.references and conversation_id is not None else {}
    )
    texts = {block.id: block.text for block in plan.blocks}
    return (
        *(
            Standing(Stands.EARLIER, _spot(block.id, places[block.id]), given.get(block.id))
            for block in plan.references
        ),
        *(
            Standing(Stands.SHORTENED, _spot(form.block_id, places[form.block_id]), stretches=stretches)
            for form in shortened
            if (stretches := _stretches(form, texts[form.block_id], places))
        ),
        *(Standing(Stands.RIDING, _spot(block.id, places[block.id])) for block in plan.riders),
    )


def _open_one(bench: Workbench, places: Sequence[Place]) -> Place | None:
    """The first of a block's places, where there is a choice none of a document that is kept apart."""
    if len(places) == 1:
        return places[0]
    for place in places:
        if not any(info.apart for info in bench.collections.asked(Scope(frozenset({place.document_id})))):
            return place
    return None


def _spot(block_id: str, place: Place, quote: str = "") -> Spot:
    return Spot(block_id, place.document_id, place.title, place.page, quote)


def _stretches(form: Form, text: str, places: Mapping[str, Place]) -> tuple[Spot, ...]:
    """What a form refers to. It says the same as ``text``, the block's own, does at this point."""
    found, at = [], 0
    for part in form.parts:
        if isinstance(part, str):
            at += len(part)
            continue
        end = at + part.end - part.start
        if part.source in places:
            found.append(_spot(part.source, places[part.source], text[at:end]))
        at = end
    return tuple(found)
