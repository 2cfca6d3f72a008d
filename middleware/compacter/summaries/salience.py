"""How likely a sentence states a fact, judged by its form alone."""

from __future__ import annotations

import re

# Reports about oneself, numbers and proper names are asked for later; questions and talk about the listener
# are not.
_QUESTION, _ONESELF, _LISTENER, _NUMBER, _NAME, _LABELLED = 0.6, 1.5, 0.8, 1.5, 1.7, 2.0
_SELF_WORDS = """
    i my we our me us mine i'm i've i'd i'll we're we've we'll ich mein meine wir unser je mon
    ma mes nous notre yo mi mis nosotros eu meu minha nós io mio mia noi я мой моя мы наш
"""
_SELF = frozenset(_SELF_WORDS.split())
_YOU = frozenset(["you", "your", "yours", "you're", "you've", "you'll"])
_DIGIT = re.compile(r"\d")
_CAPITAL = re.compile(r"(?<=[a-z,] )[A-Z][a-z]")
_LABEL = re.compile(r"[A-Z][A-Z _-]{2,24}:")


def salience(sentence: str) -> float:
    """Return a factor around 1 on what the words of ``sentence`` are worth."""
    words = sentence.lower().replace("’", "'").split()
    value = _QUESTION if sentence[-1:] in "?？" else 1.0
    if not _SELF.isdisjoint(words):
        value *= _ONESELF
    if not _YOU.isdisjoint(words):
        value *= _LISTENER
    if _DIGIT.search(sentence):
        value *= _NUMBER
    if _CAPITAL.search(sentence):
        value *= _NAME
    return value


def labelled(text: str) -> float:
    """Return the factor on all sentences of ``text``: larger where it begins with a label in capitals."""
    return _LABELLED if _LABEL.match(text) else 1.0
