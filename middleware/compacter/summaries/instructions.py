"""Standing instructions of the user: rules, limits, preferences, deadlines; in several languages.

Only what the user wrote can be one: text of tools and of the assistant never becomes a rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from compacter.history.entry import Entry
from compacter.summaries.rule_words import PHRASES, REQUESTS, UNSPACED, UNSPACED_REQUEST, WORDS
from compacter.summaries.sentences import sentences

STRONG = 2.0
"""Score from which a sentence counts as a standing instruction beyond doubt."""

LIKELY = 1.5
"""Score from which a sentence is kept as one."""

_LONGEST = 600
_SHORTEST = 6
_LONGEST_RULE = 300

_LABEL = re.compile(
    r"^\W*(?:(?:hard|standing|important|strict|global|project|team|house|ground|safety|security|user|"
    r"style)\s+)*"
    r"(?:rules?|constraints?|requirements?|instructions?|preferences?|polic(?:y|ies)|reminders?|important|"
    r"note|budget|deadline|limit|"
    r"regeln?|wichtig|vorgaben?|règles?|consignes?|contraintes?|reglas?|importante|restricci[oó]n(?:es)?|"
    r"requisitos?|"
    r"regras?|restriç(?:ão|ões)|regol[ae]|vincol[oi]|regels?|belangrijk|правил[оа]|важно|ограничени[ея]|"
    r"zasad[ay]|ważne|kural(?:lar)?|önemli|"
    r"规则|規則|重要|注意|约束|要求|ルール|制約|규칙|중요|قاعدة|مهم|नियम)\b\s*[:：\-–—]",
    re.IGNORECASE,
)
# An order to whoever reads: at the beginning of a clause.
_DIRECTIVE = re.compile(
    r"(?:^\W*|[,;:.(–—-]\s*|\b(?:and|but|please|also|so|then|that|remember|always|again|you)[:,]?\s+)"
    r"(?:please\s+)?(?:never|always|do not|don't|avoid|only (?:use|write|answer|reply|touch|change|commit|"
    r"speak|work|ever)|make sure|ensure|be sure to|"
    r"must(?!'ve| (?:be|have)\b)|mustn't|under no circumstances|at no point|no matter what|from now on|"
    r"going forward|keep (?:in mind|the|all|every|your|costs?|spending)|"
    r"stick to|refrain from|stop (?:using|doing|adding|writing)|remember to|prefer|without (?:my|asking)|"
    r"ask (?:me|before|first)|check with me|wait for my|no (?:external|more|changes?|new)|only)\b",
    re.IGNORECASE,
)
# What something must be, or may at most be.
_MODAL = re.compile(
    r"(?<=\w\s)(?:must(?!(?:'ve| have| be (?:\w+ly )?(?:so|very|great|nice|hard|tough|awesome|amazing|fun|"
    r"exciting|proud)))|mustn't|may not|may only|shall|should never|should always|cannot exceed|"
    r"can't exceed|"
    r"(?:is|are) (?:not allowed|forbidden|off[- ]limits|mandatory|required|prohibited)|(?:has|have|"
    r"needs?) to (?:be|stay|remain))\b"
    r"|\b(?:no more than|at most|not exceed|(?:budget|cap|limit|ceiling|deadline|maximum|"
    r"max)(?: \w+){0,2} (?:is|of|to|at|:)|due (?:by|on|date)|no later than|stop and (?:ask|escalate)|"
    r"i (?:prefer|want you to|need you to|expect you to|insist|forbid|(?:do not|don't) want)|i'd (?:prefer|"
    r"rather)|user (?:prefers|wants)|off[- ]limits|strictly|non[- ]negotiable|mandatory|forbidden|"
    r"not allowed)\b",
    re.IGNORECASE,
)
# An order that a word such as "all", "only", "instead" or a limit makes a lasting one.
_LASTING = re.compile(
    r"^\W*(?:please\s+|and\s+|also\s+)*(?:(?:use|write|answer|reply|respond|speak|call|stay|keep|prefix|"
    r"name|format|refer|confirm|treat|"
    r"assume|leave|limit|restrict|round|cite|include|exclude|skip|put|do|give|show|tell|mark|sign|address|"
    r"work|run|store)\b.*"
    r"\b(?:instead|only|not|all|each|every|everything|everywhere|anything|any|below|under|above|before|"
    r"after|within|at least|"
    r"in (?:one|two|three|\d+|[a-z]+case|[A-Z]\w+)|as|alone|me|dr|mr|mrs|ms|first|max|maximum|without|"
    r"until|unless)\b"
    r"|no (?!problem|worries|idea|one|doubt|way|rush|thanks|need)\w+(?: \w+){0,4}[.!]?$|max(?:imum)? \d|"
    r"(?:nothing|nobody|no one|everything|every|all|each)\b.*\b(?:may|must|should|has to|have to|needs? to|"
    r"can|stays?|remains?|is|are|be)\b|"
    r"(?:whatever|no matter what) you do|(?:tests?|safety|quality) first)"
    r"|\bbudget\b.*\d|\b(?:it is (?:important|essential|vital|crucial) (?:that|to)|we only|i(?:'m|"
    r" am) allergic|my (?:budget|limit|deadline|allerg\w+|diet)|"
    r"(?:must|should|has to|have to) (?:stay|remain|be) (?:under|below|above|within))\b",
    re.IGNORECASE,
)
_LASTING_WORDS = """
    use write answer reply respond speak call stay keep prefix name format refer confirm treat assume leave
    limit restrict round cite include exclude skip put do give show tell mark sign address work run store no
    max maximum nothing nobody everything every all each whatever tests important essential vital crucial only
    allergic allergies allergy diet budget deadline
"""
_LASTING_TRIGGERS = frozenset(_LASTING_WORDS.split())
_TRIGGER_WORDS = """
    never always not don avoid only sure ensure must mustn under at no from going keep stick
    refrain stop remember prefer prefers without ask check wait may shall should cannot can
    allowed forbidden off mandatory required prohibited to budget cap limit ceiling deadline
    maximum max due want wants need expect insist forbid rather strictly non please
"""
_TRIGGERS = frozenset(_TRIGGER_WORDS.split())
_TELLING = re.compile(
    r"^\W*(?:i(?! (?:prefer|want|need|expect|insist|forbid|do not|don't)|'d (?:prefer|rather))(?:'(?:ve|d|"
    r"m|ll))?|we(?:'(?:ve|re))?|he|she|they|it|my \w+|his|her|that|there|why|what|how|"
    r"when|did|do you|have you|would|could|is|are|was|wow|oh|yeah|actually|as for)\b",
    re.IGNORECASE,
)
_LABEL_END = frozenset(":：-–—")
_LABEL_REACH = 60
_UNSPACED_FROM = "\u0e00"
_WORD = re.compile(r"[^\W_]+")
# Vowel signs of Indic scripts are no word characters to ``re``.
_MARKED_WORD = re.compile(r"[^\s.,;:!?…\"'()«»„“”।。，、-]+")
_FIRST_WORDS = frozenset(re.split(r"[ ']", phrase)[0] for phrase in PHRASES)
_PHRASE = re.compile("|".join(rf"(?<!\w){re.escape(phrase)}" for phrase in PHRASES))


def find(entries: Iterable[Entry], scores: dict[str, float] | None = None) -> Iterator[tuple[str, float]]:
    """Yield the standing instructions among the user's own texts, word for word, with their scores."""
    for entry in entries:
        if entry.role == "user" and entry.kind == "text":
            yield from ((passage, value) for passage, value in passages(entry.text, scores) if value)


def passages(text: str, scores: dict[str, float] | None = None) -> Iterator[tuple[str, float]]:
    """Yield the sentences of a user's ``text``, each with its score as an instruction, 0 for what is none.

    Instructions that follow one another on a line belong together and are yielded as one. ``scores``
    remembers what sentences scored.
    """
    known = {} if scores is None else scores
    for line in text.split("\n"):
        rule, best = "", 0.0
        for sentence in sentences(line):
            value = known.get(sentence)
            if value is None:
                value = known[sentence] = score(sentence)
            if rule and (value < LIKELY or len(rule) + len(sentence) >= _LONGEST_RULE):
                yield rule, best
                rule, best = "", 0.0
            if value < LIKELY:
                yield sentence, 0.0
            else:
                rule, best = f"{rule} {sentence}" if rule else sentence, max(best, value)
        if rule:
            yield rule, best


def score(sentence: str) -> float:
    """Return how surely ``sentence`` is an instruction: 0 not at all, from ``STRONG`` on beyond doubt."""
    if not _SHORTEST <= len(sentence) <= _LONGEST or sentence.endswith(("?", "？", "؟")):
        return 0.0
    plain = sentence.replace("’", "'")
    low = plain.casefold()
    words = set(_WORD.findall(low))
    if not plain.isascii():
        words.update(_MARKED_WORD.findall(low))
    value = 2.0 if not _LABEL_END.isdisjoint(plain[:_LABEL_REACH]) and _LABEL.match(plain) else 0.0
    if not words.isdisjoint(_TRIGGERS):
        value += 2.0 * (_DIRECTIVE.search(plain) is not None) + 1.5 * (_MODAL.search(plain) is not None)
    if (
        not words.isdisjoint(WORDS)
        or (not words.isdisjoint(_FIRST_WORDS) and _PHRASE.search(low))
        or (max(plain) > _UNSPACED_FROM and UNSPACED.search(plain))
    ):
        value += 2.0
    if value == 0 and (
        not words.isdisjoint(REQUESTS)
        or (max(plain) > _UNSPACED_FROM and UNSPACED_REQUEST.search(plain))
        or (not words.isdisjoint(_LASTING_TRIGGERS) and _LASTING.search(plain))
    ):
        return LIKELY
    return value - 1.0 if value and _TELLING.search(plain) else value
