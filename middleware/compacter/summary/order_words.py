"""Words and forms of orders in English, which are read at the beginning of a sentence, after words
that lead to it ("please", "also").
"""

from __future__ import annotations

from typing import Final

from compacter.summary.rule_words import Row

_ACTS = (
    "use|run|re-?run|try|make|issue|write|explain|ask|tell|check|add|keep|stop|include|say|reply|"
    "answer|respond|let|call|wait|do|give|put|open|create|capture|report|return|describe|start|"
    "skip|ignore|treat|conduct|drop|omit|ensure|insert|minimi[sz]e|reuse|mention|confirm|show|"
    "warn|quote|cite|format|round|convert|remind|notify|inform|alert|mark|list|link|log|flag|"
    "pause|refuse|translate|document|suggest|leave|assume|refer|hand|escalate|offer|send|switch|"
    "retry|abort|contact|transfer|forward|choose|pick|take"
)
_VERBS = f"{_ACTS}|prefer|avoid|don't|never"
_LANGUAGES = (
    "english|german|french|spanish|italian|portuguese|dutch|russian|polish|turkish|arabic|hindi|"
    "chinese|mandarin|japanese|korean|swedish|danish|norwegian|finnish|greek|czech|ukrainian"
)

ORDERS: Final[tuple[Row, ...]] = (
    # "<" begins a tag.
    Row(
        "lead: marks",
        r"[^\w<]{1,8}",
        "(Never restart the server.)",
    ),
    Row(
        "lead: please",
        r"(?:please|also|and|but|so|then|remember|important|note|rule|ok|okay|in particular|just|"
        r"btw|oh)\b[,:.!]?\s{0,4}",
        "Please never restart the server.",
    ),
    Row(
        "order: never",
        r"never\b(?! (?:mind|again|saw|seen|been|had|knew|thought))",
        "Never restart the database.",
    ),
    Row(
        "order: always",
        r"always\b(?! (?:happy|glad|nice|fun|on))",
        "Always show the totals.",
    ),
    Row(
        "order: under no circumstances",
        r"(?:under no circumstances|at no point|refrain from)\b",
        "Under no circumstances restart it.",
    ),
    Row(
        "order: do not",
        r"(?:do not|don't)(?! (?:worry|forget|give up|feel|stress|be (?:shy|afraid|sorry)|sweat|"
        r"cry|panic|get me)\b)(?![^.,\n]{0,80}\byet(?:,|\W{0,3}$))",
        "Do not touch the archive.",
    ),
    Row(
        "order: from now on",
        r"(?:from (?:now|here|today|tomorrow|this (?:point|moment|day)|next (?:week|month|year)|"
        r"\w{3,6}day) on|starting (?:now|today|tomorrow|next|\w{3,6}day)|going forward|"
        r"in (?:the )?future|for the rest of|whatever (?:happens|you do))\b",
        "From now on, speak up.",
    ),
    Row(
        "order: avoid",
        r"(?:avoid|prefer|stick (?:to|with)|no matter what|remember to|"
        r"be (?:brief|concise|polite|honest|direct|specific|consistent|formal|precise|thorough|"
        r"strict|careful (?:with|not))|try to (?:avoid|minimi[sz]e|keep|limit))\b",
        "Avoid long words.",
    ),
    Row(
        "order: make sure",
        r"(?:make|be) sure (?:to|that|all|every|no|not|any|we|you)\b"
        r"(?! (?:take|get|rest|sleep|enjoy))",
        "Make sure that numbers have units.",
    ),
    Row(
        "order: only",
        rf"only (?:{_ACTS}|commit|touch|change|edit|work|read)\b",
        "Only use the staging database.",
    ),
    Row(
        "order: as a rule",
        r"(?:as a (?:general )?rule|in general|generally|by default),? "
        rf"(?:i'd|i would|we|you|please|{_VERBS})\b",
        "As a rule, we give no discounts.",
    ),
    Row(
        "order: remember that I cannot",
        r"(?:remember|bear in mind|note),? (?:that )?(?:i|we|you) "
        r"(?:am|are|can't|cannot|don't|do not|have to|need)\b",
        "Remember that I cannot swim.",
    ),
    Row(
        "order: ask before every",
        rf"(?:you (?:should|need to|have to) )?(?:{_ACTS}|get)\b[^.,;\n]{{1,60}}"
        r"\b(?:before|after) (?:every|each|any)\b",
        "Run the tests after every change.",
    ),
    # Not "I looked everywhere": an act comes first.
    Row(
        "order: round everywhere",
        rf"(?:{_ACTS})\b[^.;\n]{{0,80}}\b(?:everywhere|throughout|every time|each time|by default|"
        r"(?:once|twice) (?:a|per) (?:day|week|month))\b",
        "Round to two decimals everywhere.",
    ),
    Row(
        "order: once a week",
        rf"(?:once|twice) (?:a|per) (?:day|week|month),? (?:please )?(?:{_ACTS})\b",
        "Once a week, send me a report.",
    ),
    Row(
        "order: stop using",
        r"stop (?:using|saying|adding|writing|asking|apologi[sz]ing|calling|suggesting|mentioning|"
        r"repeating|putting|ending|starting|telling|giving|making)\b",
        "Stop using long words.",
    ),
    Row(
        "order: ask if something is unclear",
        r"(?:ask|tell|warn|stop|check with)(?: me| us)? (?:if|when|as soon as) "
        r"(?:anything|something|you're|you are|in doubt)\b",
        "Ask if something is unclear.",
    ),
    Row(
        "order: write all letters",
        r"(?:write|name|format|spell|label|phrase|express|book|sign|style|quote|document|number) "
        r"all (?!(?:the|these|those|this|of|my|your|our)\b)",
        "Write all headings in one line.",
    ),
    Row(
        "order: do everything in",
        r"(?:do|write|explain|document|log|run|name) everything (?:in|with|by|through|as)\b",
        "Do everything in a virtual environment.",
    ),
    Row(
        "order: treat as",
        r"treat [^.;\n]{1,60} as\b",
        "Treat the numbers as a secret.",
    ),
    Row(
        "order: answer in one line",
        r"(?:reply|answer|respond)\b[^.;\n]{0,40} (?:in|with) (?:at most |only )?"
        r"(?:a|one|two|three|four|five|\d{1,3})\b",
        "Answer in one line.",
    ),
    Row(
        "order: begin letters with",
        r"(?:start|begin|end|prefix|sign|close) (?:your |the )?"
        r"(?:answers|replies|messages|e?mails|letters|reports|commits|posts|chapters)\b",
        "Begin letters with the date.",
    ),
    Row(
        "order: act as",
        r"(?:(?:act|behave) (?:as|like)|"
        r"(?:speak|talk|write|treat|answer|respond|reply)\b[^.,;\n]{0,30} (?:like|as if|as though) "
        r"(?:i|you|we)\b|pretend to be)\b",
        "Act as my teacher of Spanish.",
    ),
    Row(
        "order: let us agree",
        r"let's (?:always|never|agree|stick to|avoid)\b",
        "Let's agree on short sentences.",
    ),
    Row(
        "order: instead",
        r"instead,? (?:try to )?(?:use|try|call|write|run|create)\b",
        "Instead, use the script.",
    ),
    Row(
        "order: keep",
        r"keep (?:all|your|in mind|my|replies|answers|responses|messages|old|everything)\b|"
        r"(?:keep|leave) [^.,;\n]{1,60} (?:compatible|unchanged|untouched|intact|alone|as it is|"
        r"in sync|consistent|simple|"
        r"private|secret|confidential|separate)\b",
        "Keep all receipts.",
    ),
    Row(
        "order: you must",
        r"you (?:must(?! be (?:kidding|joking|tired|right|proud|so)\b)|"
        r"may not|should not|shouldn't|(?:may|can) only)\b",
        "You can only send one mail.",
    ),
    Row(
        "order: we always",
        r"we (?:also )?(?:(?:always|never|only)"
        r"(?! (?:had|got|was|were|did|went|saw|heard|knew|made|came|took|met|said|told|found|"
        r"\w{1,20}ed)\b)|must|should (?:always|never)(?! have\b)|"
        r"(?:don't|do not) (?:use|test|allow|commit|ship))\b",
        "We never deploy on a Friday.",
    ),
    # Not what somebody did or does: "Clap for every singer", "Love each of them".
    Row(
        "order: check each",
        r"(?!(?:love|enjoy|like|almost|not|in|on|at|of|for|with|from|by|after|during)\b)"
        r"[a-z]{1,20} (?:every|each) \w(?![^.\n]{0,100}\b(?:this|below|today|now)\b)",
        "Check each invoice twice.",
    ),
    Row(
        "order: ask only when",
        r"(?:use|include|keep|limit|ask|check|treat|ignore|discard|write|run|work|add|return|"
        r"report|stop|mention)\b[^.\n]{0,100}"
        r"\b(?:(?<!that )(?<!which )(?<!who )only|unless|whenever|"
        r"when (?:applicable|possible|needed|in doubt|the|an?|you)|where applicable)\b",
        "Ask only when you are not sure.",
    ),
    Row(
        "order: if a test fails",
        r"(?:if|when|whenever|(?:every|each) time|(?:before|after) (?:you|every|each|any)|"
        r"for (?:all|every|each|any|test)|in (?:all|every))\b"
        r"(?! (?:yes|no|not|that|this|it|possible|so|needed|"
        r"you (?:have|want|wish|need|like|would like|prefer|are|see|get))\b)[^,\n]{3,140}, "
        rf"(?:please |always |first |then |just |simply |you should )?(?:{_VERBS})\b",
        "If a test fails, tell me.",
    ),
    Row(
        "order: reply in German",
        r"(?:reply|answer|respond|write|speak|talk|communicate|format|give|show|express|phrase|"
        r"keep|name|spell|round|cite|use|refer)\b[^.\n]{0,80}"
        rf"(?:\bin (?:(?:plain|simple|british|american) )?(?:{_LANGUAGES}|utc|metric|celsius|"
        r"euros?|dollars|bullet points|lower ?case|markdown|"
        r"(?:the )?(?:(?:active|passive) voice|(?:present|past) tense|"
        r"(?:first|second|third) person|imperative)|"
        r"(?:plain|simple) (?:text|words|terms|language))\b|"
        r"\b(?:every|each|all) (?:your )?"
        r"(?:answers?|repl\w{1,20}|messages?|prices?|amounts?|dates?|times|documents|"
        r"files|reports|e?mails|letters|pages)\b|"
        r"\b(?:short|brief|concise|formal|informal|polite)\b)",
        "Reply in German.",
    ),
    Row(
        "order: use metric units",
        r"use [^.,\n]{0,30}\b(?:spelling|units|notation|syntax|commas?|tense|voice|spaces|"
        r"tabs|quotes|indentation|pronouns|style|tone|punctuation|headings)\b(?! (?:above|below))",
        "Use metric units.",
    ),
    Row(
        "order: no emojis",
        r"no (?:emojis?|markdown|jargon|bullet points|small talk|apologies|abbreviations|"
        r"unit tests|new dependencies)\b|"
        r"no(?! (?:thanks|thank|problem|need|more)\b)(?: [a-z-]{2,20}){1,4},? please\b|"
        # Not what there was none of: "No changes."
        r"no (?!(?:thanks|worries|problems|changes|errors|results|comments|news|signs|questions|"
        r"matches|updates|differences|ideas|plans|issues|tests|objections|complaints|less|yes)\b)"
        r"[a-z]{2,20}s(?:,|\W{0,3}$)",
        "No emojis, please.",
    ),
    Row(
        "order: only trains",
        r"only(?: [a-z-]{2,20}){1,4},? please\b",
        "Only vegetarian restaurants, please.",
    ),
    Row(
        "order: let me approve",
        r"let me (?:approve|review|confirm)\b[^.;\n]{0,60}\b(?:before|every|each|any)\b",
        "Let me approve each draft.",
    ),
    Row(
        "order: no file may",
        r"no(?! (?:one|way|matter|wonder|idea|doubt|reason)\b) [^.,;:()\n]{2,40} "
        r"(?:may|should|shall|can be)\b",
        "No file may be larger than a page.",
    ),
    # Without a verb: of more than one thing, in a form that is named.
    Row(
        "order: names in capitals",
        r"(?:[a-z]{2,20} ){0,2}[a-z]{1,20}s in "
        rf"(?:{_LANGUAGES}|(?:snake|camel|pascal|kebab|upper|lower|title)[ _-]?case|capitals|"
        r"italics|bold|metric|utc|iso|euros|dollars)\b",
        "Names in capitals.",
    ),
    Row(
        "order: aisle seats only",
        r"(?!(?:the|this|that|these|those|it|for|in|if|not|one|first|last|next|read)\b)"
        r"[a-z'-]{2,20}(?: [a-z'-]{2,20}){0,2} only(?:,? please)?\W{0,3}$",
        "Aisle seats only, please.",
    ),
    # Not "That should be fine."
    Row(
        "order: replies should be short",
        r"(?!(?:i|you|we|it|that|this|these|he|she|they|there|what|how|who|why|where|everything|"
        r"nobody|but|and|so|if|when)\b)[a-z][^.,;:()\n]{2,50}(?<! it)(?<! that)(?<! this) "
        r"should (?:always |never |not |only )?"
        r"(?:be(?! (?:\w{1,20}ing|here|there|back|ready|done|fine|ok|okay)\b)|"
        r"have(?! \w{1,20}(?:ed|en|ne)\b)|use|show|start|end|support|fit|stay)\b",
        "Replies should be short.",
    ),
)

FOR_GOOD: Final[tuple[Row, ...]] = (
    Row(
        "for good: always answer",
        rf"^\W{{0,4}}(?:always|whenever [^,]{{3,100}}, (?:please )?) ?(?:{_VERBS})\b",
        "Always answer in one sentence.",
    ),
)
