"""Shorten a sentence by leaving out words that carry no fact, as telegrams do."""

from __future__ import annotations

# Articles, fillers, greetings and copulas. Negations, modals and pronouns for other people always stay.
_LEFT_OUT_WORDS = """
    a an the really very just quite actually basically simply totally definitely literally
    honestly truly absolutely super kinda so such well oh wow hey hi hello yeah yep haha lol hmm
    aw aww ah thanks please let's that there is are was were be been being am it it's i'm that's
    there's you're they're we're i i've to of do does did some also
"""
_LEFT_OUT = frozenset(_LEFT_OUT_WORDS.split())
_TRAILING = ",;:!"
_ENDS = ".?"


def shorten(sentence: str) -> str:
    """Return an English ``sentence`` in telegram style; other languages keep nearly all of their words."""
    kept: list[str] = []
    for word in sentence.split():
        bare = word.rstrip(".,;:!?")
        if bare.replace("’", "'").lower() in _LEFT_OUT:
            # The sentence's end stays with the word before.
            if kept and word[-1] in _ENDS:
                kept[-1] = kept[-1].rstrip(_TRAILING) + word[-1]
        else:
            kept.append(word)
    return " ".join(kept)
