"""Standing instructions of the user: rules, limits, preferences, deadlines; in several languages.

Only what the user wrote can be one: text of tools and of the assistant never becomes a rule.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from compacter.messages.parts import Entry
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
    r"name|format|refer|confirm|treat|assume|leave|limit|restrict|round|cite|include|exclude|skip|put|do|"
    r"give|show|tell|mark|sign|address|work|run|store)\b.*"
    r"\b(?:instead|only|not|all|each|every|everything|everywhere|anything|any|below|under|above|before|"
    r"after|within|at least|in (?:one|two|three|\d+|[a-z]+case|[A-Z]\w+)|as|alone|me|dr|mr|mrs|ms|first|"
    r"max|maximum|without|until|unless)\b"
    r"|no (?!problem|worries|idea|one|doubt|way|rush|thanks|need)\w+(?: \w+){0,4}[.!]?$|max(?:imum)? \d"
    r"|(?:nothing|nobody|no one|everything|every|all|each)\b.*"
    r"\b(?:may|must|should|has to|have to|needs? to|can|stays?|remains?|is|are|be)\b"
    r"|(?:whatever|no matter what) you do|(?:tests?|safety|quality) first)",
    re.IGNORECASE,
)
_NEEDED = re.compile(
    r"\bbudget\b.*\d|\b(?:it is (?:important|essential|vital|crucial) (?:that|to)|we only|"
    r"i(?:'m| am) allergic|my (?:budget|limit|deadline|allerg\w+|diet)|"
    r"(?:must|should|has to|have to) (?:stay|remain|be) (?:under|below|above|within))\b",
    re.IGNORECASE,
)
_LASTING_WORDS = """
    use write answer reply respond speak call stay keep prefix name format refer confirm treat assume leave
    limit restrict round cite include exclude skip put do give show tell mark sign address work run store no
    max maximum nothing nobody everything every all each whatever tests test safety quality
"""
_LASTING_TRIGGERS = frozenset(_LASTING_WORDS.split())
_NEEDED_WORDS = "budget important essential vital crucial only allergic limit deadline diet under below above within"
_NEEDED_TRIGGERS = frozenset([*_NEEDED_WORDS.split(), "allergy", "allergies"])
_OPENING = 4
"""Words among which an order to be kept begins."""
# Words without which the patterns above cannot match: a cheap test before the expensive ones.
_DIRECTIVE_WORDS = """
    never always not don avoid only sure ensure must mustn circumstances point matter now forward keep
    stick refrain stop remember prefer without ask check wait external changes more new
"""
_DIRECTIVE_TRIGGERS = frozenset(_DIRECTIVE_WORDS.split())
_MODAL_WORDS = """
    must mustn may shall should exceed allowed forbidden off limits mandatory required prohibited stay
    remain more most budget cap limit ceiling deadline maximum max due later escalate prefer prefers
    want wants need expect insist forbid rather strictly non negotiable be
"""
_MODAL_TRIGGERS = frozenset(_MODAL_WORDS.split())
_TELLING = re.compile(
    r"^\W*(?:i(?! (?:prefer|want|need|expect|insist|forbid|do not|don't)|'d (?:prefer|rather))(?:'(?:ve|d|"
    r"m|ll))?|we(?:'(?:ve|re))?|he|she|they|it|my \w+|his|her|that|there|why|what|how|"
    r"when|did|do you|have you|would|could|is|are|was|wow|oh|yeah|actually|as for)\b",
    re.IGNORECASE,
)
# "Tell me about the ferry" is done with its answer; "give me all prices in euros" is not.
_ONCE = re.compile(r"^\W*(?:please\s+)?(?:tell|give|show|send|find|get|read|explain to)\s+(?:me|us)\b", re.IGNORECASE)
_LASTS = frozenset(
    ["all", "any", "every", "each", "always", "only", "in", "as", "with", "without", "when", "if", "before"]
)
_LABEL_END = frozenset(":：-–—")
_LABEL_REACH = 60
_UNSPACED_LETTER = re.compile(r"[\u0590-\u05ff\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WORD = re.compile(r"[^\W_]+")
# Vowel signs of Indic scripts are no word characters to ``re``.
_MARKED_WORD = re.compile(r"[^\s.,;:!?…\"'()«»„“”।。，、-]+")
_BY_FIRST_WORD: dict[str, list[re.Pattern[str]]] = defaultdict(list)
for _phrase in PHRASES:
    _BY_FIRST_WORD[re.split(r"[ ']", _phrase)[0]].append(re.compile(rf"(?<!\w){re.escape(_phrase)}"))


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
    listed = _WORD.findall(low)
    words = set(listed)
    unspaced = False
    if not plain.isascii():
        words.update(_MARKED_WORD.findall(low))
        unspaced = _UNSPACED_LETTER.search(plain) is not None
    value = 2.0 if not _LABEL_END.isdisjoint(plain[:_LABEL_REACH]) and _LABEL.match(plain) else 0.0
    if not words.isdisjoint(_DIRECTIVE_TRIGGERS) and _DIRECTIVE.search(plain):
        value += 2.0
    if not words.isdisjoint(_MODAL_TRIGGERS) and _MODAL.search(plain):
        value += 1.5
    if not words.isdisjoint(WORDS) or _has_phrase(words, low) or (unspaced and UNSPACED.search(plain)):
        value += 2.0
    if value == 0 and (
        not words.isdisjoint(REQUESTS)
        or (unspaced and UNSPACED_REQUEST.search(plain))
        or (not _LASTING_TRIGGERS.isdisjoint(listed[:_OPENING]) and _LASTING.match(plain))
        or (not words.isdisjoint(_NEEDED_TRIGGERS) and _NEEDED.search(plain))
    ):
        return 0.0 if _ONCE.match(plain) and words.isdisjoint(_LASTS) else LIKELY
    return value - 1.0 if value and _TELLING.match(plain) else value


def _has_phrase(words: set[str], text: str) -> bool:
    return any(phrase.search(text) for word in words & _BY_FIRST_WORD.keys() for phrase in _BY_FIRST_WORD[word])
