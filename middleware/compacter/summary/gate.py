"""Refuse an answer that is no summary.

Summaries have many forms and languages, so nothing is refused for its words. What a summarizer
returns by mistake (an apology, an error page, a question back) has nothing of the conversation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from operator import add

from compacter.lines.words import UNSPACED, words
from compacter.messages.replies import Reply

# Reasons of providers for the end of an answer.
_CUT_OFF = re.compile(
    "length|max_tokens|max_output_tokens|model_length|model_context_window_exceeded|incomplete"
)
_FILTERED = re.compile(
    "content_filter|content_filtered|safety|refusal|recitation|blocklist|prohibited_content|spii|"
    "guardrail_intervened"
)
_CUT = "the summary was cut off by its token limit"
_EMPTY = "the summary is empty"
NEED_ROOM = frozenset((_CUT, _EMPTY))
"""Faults of an answer that has spent its tokens, for example on reasoning."""
_THOUGHTS = re.compile(r"(?is)\A\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)")

# A tool call as text, in the forms that models are trained on: tags, and JSON with name and
# arguments.
_CALL = re.compile(
    r"(?mi)^\W{0,8}(?:tool_calls?\]|(?:tool_call|function_call|tool_use|invoke)\b[^\n>]{0,80}>"
    r"|function=\w|python_tag\|>)"
    r'|\A[\s`\[{]{1,16}(?:json\s{1,4}[\[{\s]{1,16})?"(?:name|tool|type|function|tool_calls)"\s?:'
    r'(?s:.{0,400}?)"(?:arguments|parameters|input|args)"\s?:'
)
# Letters and digits of the shortest line that is looked for in the instruction: a heading may stand
# in both.
_SHORTEST_LINE = 16
# Words that models write below a heading without items.
_NOTHING = re.compile(r"(?:none|na|nothing)\Z")

_SENTENCE = re.compile(r"[.!?](?=\s)|[。！？\n]")
# Largest share of a text that is a sentence said before, of those that are said three times or
# more.
_REPEATED = 0.4
# A sentence of so many words has at least one different word in so many.
_LONG_SENTENCE = 24
_OF_A_LOOP = 6

# Tags, and keys of JSON: many texts share them.
_MARKUP = re.compile(r"""<[^<>]{1,200}>|["'][\w -]{1,40}["']\s{0,4}:""")
_TOKEN = re.compile(r"[\w./:@#?=&-]{1,100}")
_AROUND = "./:@#?=&-"
_IDENTIFIER = re.compile(r"(?=.{4})(?:[^\W\d_].*\d|\d.*[^\W\d_]|\w[_/.:@#?=&-]\w|[a-z][A-Z])")
_INSIDE_A_SENTENCE = re.compile(r"(?<=[\w,;)] )(?![a-z])[^\W\d_]\w{3,}")
# Letters by which words are compared, so that their endings do not count; and these of a word.
_STEM = 4
_BEGINNING = re.compile(rf"(?<![^\W\d_])[^\W\d_]{{{_STEM}}}")
# A transcript is about so many words, its most common ones.
_MOST_TOPICS = 80
# Nothing can be compared with a transcript about fewer words.
_FEWEST_TOPICS = 4
# A text about something else has half of its words in common with a transcript that is about so
# many words.
_HALF = 200
# Pairs of characters that count as one such word. Those that are more than one in so many are
# grammar, and so is Japanese in hiragana.
_PAIRS = 6
_ONE_IN = 300
_RARE = 3
_HIRAGANA = re.compile("[\u3041-\u309f]{2}")
# Words that a name counts for, and an identifier.
_NAME = 4
_ID = 6
# Characters of a transcript from which an answer must share something: a true sentence may share no
# word with less.
_LONG_TRANSCRIPT = 300
# Words beside a text's own that may be in common by chance: short texts vary more.
_SPARE = 12


def clean(text: str) -> str:
    """Return the text of an answer without the thinking that local models write before the answer
    itself.
    """
    return _THOUGHTS.sub("", text, count=1).strip()


class Transcript:
    """The text that the summarizer was asked to summarize, prepared for a comparison with its
    answer.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        """Collect the names and the most frequent words of the texts."""
        text = "\n".join(texts)
        common = _stems(text).most_common(_MOST_TOPICS)
        # A row of one letter is no word.
        words = {stem for stem, _ in common if len({*stem}) > 1}
        pairs = _pairs(text)
        most = max(_RARE, pairs.total() // _ONE_IN)
        rare = [pair for pair, count in pairs.most_common() if count <= most]
        rare = rare[: _MOST_TOPICS * _PAIRS]
        self.topics = words.union(rare)
        """Its subjects: stems of words, and pairs of characters."""
        size = len(words) + len(rare) // _PAIRS
        self.chance = size / (size + _HALF)
        """Share of the words of a text about something else that stand in the transcript, too."""
        self.text = text.lower()
        tokens = _tokens(text)
        inside = set(_INSIDE_A_SENTENCE.findall(text))
        self.names = {name for name in inside if name[0].isupper() and name.lower() not in tokens}
        """Words with a capital inside a sentence that never stand without it."""

    def is_shared(self, answer: str) -> bool:
        """Return whether an answer has more in common with the transcript than a text about
        something else has by chance: two names or identifiers, or some of the words that the
        transcript is about.
        """
        if len(self.text) < _LONG_TRANSCRIPT or len(self.topics) < _FEWEST_TOPICS:
            return True
        answer = _MARKUP.sub(" ", answer)
        said = _tokens(answer)
        ids = (token.lower() for token in said if _IDENTIFIER.search(token))
        named = {*(name for name in ids if name in self.text), *map(str.lower, said & self.names)}
        words = {*_stems(answer), *_pairs(answer)}.difference(name[:_STEM] for name in named)
        shared = len(words & self.topics) + sum(_NAME if name.isalpha() else _ID for name in named)
        # Of a single word nothing can be told, not even if it is a name.
        is_more = min(len(words | said) - 1, shared) > self.chance * (len(words) + _SPARE)
        return len(named) > 1 or is_more


def _stems(text: str) -> Counter[str]:
    return Counter(_BEGINNING.findall(UNSPACED.sub(" ", text.lower())))


def _pairs(text: str) -> Counter[str]:
    """Return the pairs of neighbouring characters of scripts without spaces. Those of a sentence
    that is said again are not counted again.
    """
    runs = set(UNSPACED.findall(text))
    pairs = Counter(pair for run in runs for pair in map(add, run, run[1:]))
    return Counter({pair: count for pair, count in pairs.items() if not _HIRAGANA.match(pair)})


def _tokens(text: str) -> set[str]:
    spaced = UNSPACED.sub(" ", text)
    return {token.strip(_AROUND) for token in set(_TOKEN.findall(spaced))}


def fault(
    reply: Reply, limit: int, instruction: str = "", transcript: Transcript | None = None
) -> str:
    """Return the fault of a summary, or an empty string. It is found in time linear in the text.

    Args:
        reply: The answer, with its text after ``clean``.
        limit: Size in characters of the messages that the summary replaces.
        instruction: The request's own instruction, without the transcript.
        transcript: What the summary is about; ``None`` for one that the program passes.
    """
    finish = (reply.finish or "").lower()
    if reply.called_tool or _CALL.search(reply.text):
        return "the summarizer called a tool"
    if reply.refused or _FILTERED.fullmatch(finish):
        return "the summarizer refused"
    if _CUT_OFF.fullmatch(finish):
        return _CUT
    if not words(reply.text):
        return _EMPTY
    if instruction and _is_given_back(reply.text, instruction):
        return "the summary gives the instruction back"
    if len(reply.text) >= limit:
        return "the summary is not smaller than what it replaces"
    if _repeats(reply.text):
        return "the summary repeats itself"
    if transcript is not None and not transcript.is_shared(reply.text):
        return "the summary has nothing of the conversation"
    return ""


def _is_given_back(text: str, instruction: str) -> bool:
    """Return whether an answer contains the instruction, or most of the answer's lines stand in the
    instruction. Headings and empty items do not count.
    """
    asked = _bare(instruction)
    if _bare(instruction.rpartition("\n\n")[2]) in _bare(text):
        return True
    given = own = 0
    for line in map(_bare, text.splitlines()):
        # "Decisions: None" is a heading, too.
        is_asked = _NOTHING.sub("", line) in asked
        given += is_asked and len(line) >= _SHORTEST_LINE
        own += not is_asked
    return given >= own


def _repeats(text: str) -> bool:
    """Return whether a text says the same sentences over and over, or the same words in a sentence.
    Sentences that are alike, as those of a list, are not the same.
    """
    sentences = Counter(filter(None, map(_bare, _SENTENCE.split(text))))
    most = 1 if len(sentences) == 1 else 2
    again = sum(len(one) * (count - 1) for one, count in sentences.items() if count > most)
    if again > _REPEATED * sum(len(one) * count for one, count in sentences.items()):
        return True
    said = max(map(words, _SENTENCE.split(text)), key=len)
    return len(said) >= _LONG_SENTENCE and len(set(said)) * _OF_A_LOOP <= len(said)


def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))
