"""Standing rules of the user: few and sure, and what was said about them later.

Only the plainest forms count: always, never, from now on, in the languages that are there. What
else a user wants stays as the user's own short messages, under their own speaker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from compacter.summary.head import SHORT, Head
from compacter.summary.message import LATER, RULE, rule_lines
from compacter.text.sentences import has_code
from compacter.text.words import stems

# Letters of the shortest and the longest rule.
_SHORTEST_RULE = 8
_LONGEST_RULE = 320
_MOST_LATER = 3
"""Most later statements about rules: after ten compactions ten of fifteen kept rules were false
ones of these."""
# Rules take at most this part of a summary, or these characters of a small one.
_RULE_SHARE = 3
_RULE_SIZE = 400
_LASTING_WORDS = """
    alway never now here going times circumstance immer nie jetzt sofort künftig nun toujours jamais
    désormais dorénavant maintenant siempre nunca ahora adelante sempre agora d'ora diante altijd
    nooit vanaf всегда никогда отныне впредь zawsze nigdy teraz zaman asla bundan 总是 永远
    从现在 从今 以后 今后 今後 不要再 總是 永遠 從現在 必ず 決して 絶対 これから 항상 절대
    앞으로 반드시 دائما أبدا हमेशा कभी
"""
_LASTING = tuple(_LASTING_WORDS.split())
"""Parts of words for what lasts: a text without any is read no further."""
_ORDERS = re.compile(
    r"(?i)^(?:[-*•>\d.)\s\"'“*_]{0,8})(?:(?:and|but|so|ok(?:ay)?|also|then|oh|well|remember|note|"
    r"important|rules?|please|just|hey|again|nb|ps|bitte|und|aber|s'il (?:te|vous) pla[iî]t|"
    r"por favor|per favore|пожалуйста|alsjeblieft|proszę|lütfen)\b[\s,:!-]{0,3}){0,3}"
    r"(?:(?:you (?:must|should|can|may|will|are to|have to|need to) |i want you to |try to |make "
    r"sure (?:to |you )|do )?(?:always|never)\s(?!(?:mind|knew|know|been|seen|heard|had|thought|"
    r"tried|got|did|saw|went|came|felt|made|told|gave|took|found|left|lost|met|(?!need|feed|exceed|"
    r"proceed|speed)\w+ed|was|were|is|has|have|wanted|liked|loved|said|say|again|ever|forget|up|here|"
    r"there|a|an|the|so|good|fun|nice|great|happy|glad|something|in|on|at|too)\b)|"
    r"(?:from (?:now|here) on|going forward|at all times|under no circumstances)\b|"
    r"(?!the|a|an|my|our|his|her|their|it|that|this|i|we|he|she|they)[^.!?]{4,80}\b"
    r"(?:from (?:now|here) on|going forward|at all times)\b)"
)
"""An English order with such a word at its beginning."""
_OTHER = re.compile(
    r"(?i)^[^,.!?。！？]{0,40}?(?:\b(?:immer|nie|niemals|ab (?:jetzt|sofort)|künftig|toujours|"
    r"von (?:jetzt|nun) an|jamais|désormais|dorénavant|à partir de maintenant|siempre|nunca|"
    r"a partir de ahora|de ahora en adelante|sempre|a partir de agora|d'ora in poi|altijd|nooit|"
    r"de agora em diante|vanaf nu|всегда|никогда|отныне|впредь|zawsze|nigdy|od teraz|her zaman|"
    r"asla|bundan sonra)\b|总是|永远|从现在开始|从今以后|以后都|今后|不要再|總是|永遠|從現在|"
    r"必ず|決して|絶対に|今後は|これからは|항상|절대|앞으로|반드시|دائما|أبدا|हमेशा|कभी)"
)
_OF_ONESELF = re.compile(
    r"(?i)\b(?:i|i'm|i've|we|he|she|they|ich|wir|er|je|j'|nous|il|elle|yo|me|nos|eu|io|ik|wij|я|мы|"
    r"он|она|ja|noch|fast|wie|comme|como|come|zoals|как)\b|我们?|私|僕|나는|저는"
)
"""Whose habits are told orders nothing: "I never eat eggs.", "wie immer"."""
_CHANGES = re.compile(
    r"\b(?:now|again|instead|no longer|any ?more|except|unless|exception|forget|drop|scrap|"
    r"cancel|withdr\w+|lift\w*|changed? (?:my|our) mind|is (?:fine|ok(?:ay)?|allowed)|may|"
    r"after all|nicht mehr|doch|wieder|jetzt|außer|stattdessen|plus besoin|maintenant|"
    r"sauf|finalement|ya no|ahora|salvo|excepto|más bien|больше не|теперь|кроме)\b|"
    r"现在|不用|除了|もう|これから|이제"
)
"""A word with which people change what they said."""
_SAME = 0.4
"""Share of a rule's topic that a statement about it has."""
_EMPTY = stems(
    "always never again from now on please make sure keep want need use when whenever every each"
)


def is_rule(sentence: str) -> bool:
    """Return whether a user's sentence is plainly meant to last: always, never, from now on."""
    if not 8 <= len(sentence) <= _LONGEST_RULE:
        return False
    plain = sentence.rstrip(" \"'*_)”")
    if plain.endswith(("?", "？", "؟", ":", "：", "…")) or has_code(plain):
        return False
    if _ORDERS.match(plain):
        return True
    other = _OTHER.match(plain)
    return other is not None and not _OF_ONESELF.search(plain)


def rules(head: Head, room: int, quoted: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the lines of rules: declared, of the earlier summary, and those that the user's own
    words show; then what the user said about them later. ``room`` is that of the summary, in
    characters; ``quoted`` are sentences of the user that a model calls rules.
    """
    fixed = rule_lines(head.declared)
    lines = dict.fromkeys((*fixed, *head.prior.rules))
    topics = [stems(line) - _EMPTY for line in lines]
    quoted = set(quoted)
    for said in head.said:
        if said.speaker != "User" or said.place < 0:
            continue
        low = said.text.lower()
        may_change = topics and len(low) <= SHORT and _CHANGES.search(low)
        may_last = quoted or any(map(low.__contains__, _LASTING))
        for _, sentence in said.pieces if may_change or may_last else ():
            own = stems(sentence) - _EMPTY
            if sentence in quoted or is_rule(sentence):
                lines[RULE + sentence] = None
                topics.append(own)
            elif (
                may_change
                and not sentence.endswith(("?", "？"))
                and _CHANGES.search(sentence.lower())
                and any(len(own & each) > _SAME * min(len(own), len(each)) for each in topics)
            ):
                lines.pop(LATER + sentence, None)
                lines[LATER + sentence] = None
    later = [line for line in reversed(lines) if line.startswith(LATER)]
    others = [line for line in reversed(lines) if line not in (*fixed, *later)]
    left = max(room // _RULE_SHARE, min(room * 2 // 3, _RULE_SIZE)) - sum(map(len, fixed))
    chosen = set(fixed)
    for line in (*later[:_MOST_LATER], *others):
        if len(line) < left:
            left -= len(line) + 1
            chosen.add(line)
    return tuple(line for line in lines if line in chosen)
