"""What every policy is, in words: names alone say nothing to who never saw them."""

_EXPLAINED = {
    "none": "reads everything anew",
    "last-prompt": "keeps the last prompt only",
    "prefix": "all prompts, by relevance",
    "offload": "prefix, with RAM and SSD",
    "contextpilot": "the paper's order and dedup",
    "slipstream": "the product",
}
_SENTENCES = {
    "none": "reading everything anew",
    "last-prompt": "keeping only the last prompt",
    "prefix": "a prefix cache with passages by relevance",
    "offload": "a prefix cache with RAM and SSD, passages by relevance",
    "contextpilot": "the paper's order and de-duplication",
    "slipstream": "Slipstream",
}


def explained(name: str) -> str:
    """A few words below the name in a plot; empty where nothing is known of it."""
    if name in _EXPLAINED:
        return _EXPLAINED[name]
    kind, _, rest = name.partition(":")
    if kind == "blend":
        return f"blocks shifted, {rest} redone" if rest else "blocks shifted"
    if kind == "server":
        return "a running llama-server"
    if name.startswith("slipstream-"):
        return f"without {name.removeprefix('slipstream-')}"
    return ""


def in_a_sentence(name: str) -> str:
    return _SENTENCES.get(name, name)
