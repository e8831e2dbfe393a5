"""What annotations say, in the language of the question; English where that is not known.

A model that is asked in German about German passages should find no English between them: small ones go on in
whatever language stood last.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Phrases:
    sources: str
    """``{}``: files with the labels of their passages."""
    of_file: str
    """``{labels}``, ``{name}``."""
    whole: str
    """``{}``: names of files."""
    earlier: str
    """``{}``: labels."""
    ranking: str
    """``{}``: labels."""


ENGLISH = Phrases(
    "Sources: {}.",
    "{labels} from {name}",
    "Sources: all of {}.",
    "Given earlier in this conversation: {}.",
    "Most relevant first: {}.",
)
_PHRASES = {
    "en": ENGLISH,
    "de": Phrases(
        "Quellen: {}.",
        "{labels} aus {name}",
        "Quellen: vollständig {}.",
        "Weiter oben in diesem Gespräch: {}.",
        "Das Wichtigste zuerst: {}.",
    ),
    "fr": Phrases(
        "Sources : {}.",
        "{labels} de {name}",
        "Sources : l'intégralité de {}.",
        "Déjà donnés dans cette conversation : {}.",
        "Du plus au moins pertinent : {}.",
    ),
    "es": Phrases(
        "Fuentes: {}.",
        "{labels} de {name}",
        "Fuentes: la totalidad de {}.",
        "Ya dados en esta conversación: {}.",
        "De más a menos relevante: {}.",
    ),
    "it": Phrases(
        "Fonti: {}.",
        "{labels} da {name}",
        "Fonti: per intero {}.",
        "Già dati in questa conversazione: {}.",
        "Dal più al meno rilevante: {}.",
    ),
    "pt": Phrases(
        "Fontes: {}.",
        "{labels} de {name}",
        "Fontes: a totalidade de {}.",
        "Já dados nesta conversa: {}.",
        "Do mais ao menos relevante: {}.",
    ),
    "nl": Phrases(
        "Bronnen: {}.",
        "{labels} uit {name}",
        "Bronnen: geheel {}.",
        "Eerder in dit gesprek gegeven: {}.",
        "Meest relevant eerst: {}.",
    ),
    "ru": Phrases(
        "Источники: {}.",
        "{labels} из {name}",
        "Источники: полностью {}.",
        "Уже приведены в этом разговоре: {}.",
        "Сначала самые важные: {}.",
    ),
    "zh": Phrases(
        "来源：{}。",
        "{labels} 出自 {name}",
        "来源：{} 全文。",
        "本对话前面已给出：{}。",
        "按相关性排序：{}。",
    ),
    "ja": Phrases(
        "出典：{}。",
        "{labels}（{name}）",
        "出典：{} の全文。",
        "この会話で既出：{}。",
        "関連の高い順：{}。",
    ),
    "ko": Phrases(
        "출처: {}.",
        "{name}의 {labels}",
        "출처: {} 전체.",
        "이 대화에서 이미 제시됨: {}.",
        "관련도 순: {}.",
    ),
    "ar": Phrases(
        "المصادر: {}.",
        "{labels} من {name}",
        "المصادر: كامل {}.",
        "وردت سابقا في هذه المحادثة: {}.",
        "الأكثر صلة أولا: {}.",
    ),
}
_SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("ko", re.compile("[\uac00-\ud7af]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
)
"""Kana before Han: Japanese has both."""
_COMMON = {
    "en": "the of and is are what which who how when where why does do did was were can in to for with this "
    "that a an as on at by from per no or be it its not has have all me my explain list compare summarize",
    "de": "der die das und ist sind was welche welcher wer wie wann wo wird werden hat kann nicht ein eine "
    "im den dem des zu für mit auf von",
    "fr": "le la les des et est sont que quel quelle quels qui comment quand où peut pas un une du dans pour "
    "avec sur au",
    "es": "el la los las y es son qué cuál cuáles quién cómo cuándo dónde puede no un una del en para con "
    "por al se",
    "it": "il lo gli le e è sono che quale quali chi come quando dove può non un una del della di in per con "
    "al si nel",
    "pt": "o os as e é são que qual quais quem como quando onde pode não um uma do da dos em para com por ao "
    "no na",
    "nl": "de het een en is zijn wat welke wie hoe wanneer waar wordt worden heeft kan niet van in op voor "
    "met te",
}
_WORDS = {language: frozenset(words.split()) for language, words in _COMMON.items()}
_TELLING = {
    language: frozenset(
        word
        for word in words
        if len(word) >= 4 and not any(word in other for name, other in _WORDS.items() if name != language)
    )
    for language, words in _WORDS.items()
}
"""Words that no other of these languages has, long enough to be no name or abbreviation."""
_OTHERS = re.compile("[іїєґ\u067e\u0686\u0698\u06a9\u06af\u06cc]")
"""Letters of Ukrainian, Persian and Urdu, which share a script with another language here."""
_WORD = re.compile(r"\w+")
_SCRIPT_SHARE = 0.2
"""Of the letters, so many of a script make a text one of its language: a name in it does not."""


def phrases_for(question: str) -> Phrases:
    return _PHRASES[language_of(question)]


def language_of(text: str) -> str:
    """ISO 639-1 code of a question's language, by script and its commonest words; ``en`` if none is sure."""
    letters = sum(map(str.isalpha, text))
    if _OTHERS.search(text.lower()):
        return "en"
    for language, pattern in _SCRIPTS:
        if letters and sum(1 for _ in pattern.finditer(text)) >= _SCRIPT_SHARE * letters:
            return language
    words = _WORD.findall(text.lower())
    counts = {language: sum(word in common for word in words) for language, common in _WORDS.items()}
    best = max(counts, key=lambda language: counts[language])
    is_sure = counts[best] > 1 or any(word in _TELLING[best] for word in words)
    return best if is_sure and counts[best] > counts["en"] else "en"
