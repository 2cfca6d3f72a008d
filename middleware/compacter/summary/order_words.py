"""Words and forms of standing instructions in English.

An *order* is read at the beginning of a sentence, after words that lead to it ("please", "also");
a *wish* at any place.
"""

from __future__ import annotations

from typing import Final

from compacter.summary.rule_words import Row

_ACTS = (
    "use|run|re-?run|try|make|issue|write|explain|ask|tell|check|add|keep|stop|include|say|reply|"
    "answer|respond|let|call|wait|do|give|put|open|create|capture|report|return|describe|start|"
    "skip|ignore|treat|conduct|drop|omit|ensure|insert|minimi[sz]e|reuse|mention|confirm|show|"
    "warn|quote|cite|format|round|convert|remind|notify|inform|alert|mark|list|link|log|flag|"
    "pause|refuse|translate|document|suggest|leave|assume|refer"
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
        r"(?:from (?:now|here|today|this (?:point|moment|day)) on|going forward|"
        r"in (?:the )?future|for the rest of|whatever (?:happens|you do))\b",
        "From now on, speak up.",
    ),
    Row(
        "order: avoid",
        r"(?:avoid|prefer|stick (?:to|with)|no matter what|remember to|"
        r"be (?:brief|concise|polite|honest)|try to (?:avoid|minimi[sz]e|keep|limit))\b",
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
        rf"only (?:{_ACTS}|commit|touch|change|edit|work|read|send)\b",
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
        r"(?:am|are|can't|cannot|can only|don't|do not|have to|need)\b",
        "Remember that I cannot swim.",
    ),
    Row(
        "order: ask before every",
        rf"(?:you (?:should|need to|have to) )?(?:{_ACTS}|get|send)\b[^.,;\n]{{1,60}}"
        r"\b(?:before|after) (?:every|each|any)\b",
        "Run the tests after every change.",
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
        r"keep [^.,;\n]{1,60} (?:compatible|unchanged|untouched|intact|in sync|consistent|simple|"
        r"private|secret|confidential|separate)\b",
        "Keep all receipts.",
    ),
    Row(
        "order: you must",
        r"you (?:must(?! be (?:kidding|joking|tired|right|proud|so)\b)|"
        r"may not|should (?:always|never|not)|shouldn't|(?:may|can) only)\b",
        "You can only send one mail.",
    ),
    Row(
        "order: we always",
        r"we (?:also )?(?:(?:always|never|only)"
        r"(?! (?:had|got|was|were|did|went|saw|heard|knew|made|came|took|met|said|told|found|"
        r"\w{1,20}ed)\b)|must|should (?:always|never)|"
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
        r"(?:plain|simple) (?:text|words|terms|language))\b|"
        r"\b(?:every|each|all) (?:your )?"
        r"(?:answers?|repl\w{1,20}|messages?|prices?|amounts?|dates?|times|documents|"
        r"files|reports|e?mails|letters|pages)\b|"
        r"\b(?:short|brief|concise|formal|informal|polite)\b)",
        "Reply in German.",
    ),
    Row(
        "order: use metric units",
        r"use [^.,\n]{0,30}\b(?:spelling|units|notation|syntax)\b",
        "Use metric units.",
    ),
    Row(
        "order: no emojis",
        r"no (?:emojis?|markdown|jargon|bullet points|small talk|apologies|abbreviations|"
        r"unit tests|new dependencies)\b|"
        r"no(?! (?:thanks|thank|problem|need|more)\b)(?: [a-z-]{2,20}){1,4},? please\b",
        "No emojis, please.",
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

WISHES: Final[tuple[Row, ...]] = (
    # Not "That must have been fun."
    Row(
        "wish: it must",
        r"\bmust(?:n't)?\b(?!'ve|"
        r" have(?! (?:an?(?! lot)|no|at least|exactly|one|two|its|their|\d)\b)|"
        r" feel| admit| say|"
        r" be (?:so|very|really|great|nice|hard|tough|kidding|joking|tired|right|wrong|proud|"
        r"the|an?|it)\b)",
        "The folder must stay read-only.",
    ),
    Row(
        "wish: it is not allowed",
        r"(?:\b(?:is|are)|'re) (?:strictly |absolutely )?(?:not allowed|forbidden|off[- ]limits|"
        r"mandatory|prohibited|only (?:available|allowed))\b",
        "Smoking is strictly forbidden.",
    ),
    # Not what has been tried: "The file can't be opened".
    Row(
        "wish: it cannot be before",
        r"\b(?:cannot|can't|can not) be [^.,;\n]{1,60} "
        r"(?:before|after|later|earlier|outside|unless)\b",
        "Meetings can't be held before ten.",
    ),
    Row(
        "wish: it has to work",
        r"(?<!\bhe )(?<!\bshe )\b(?:has|needs) to (?:work|run|stay|remain|fit|support|comply|"
        r"be (?:able|compatible|accessible|compliant))\b",
        "It has to work without a network.",
    ),
    Row(
        "wish: at all times",
        r"\b(?:under no circumstances|on no account|in no case|at all times|no exceptions|"
        r"without exception)\b",
        "The migration stays, no exceptions.",
    ),
    Row(
        "wish: the policy is",
        r"\b(?:our|my) (?:policy|convention|rule|style|standard|preference)s? (?:is|are)\b|"
        r"\bwe (?:follow|stick to)\b",
        "Our policy is that refunds take a week.",
    ),
    Row(
        "wish: wherever possible",
        r"\b(?:whenever|wherever|where) (?:(?:one|it|that|they) (?:is|are) )?"
        r"(?:possible|available|applicable|appropriate)\b",
        "A window seat wherever possible.",
    ),
    Row(
        "wish: keep that in mind",
        r"\b(?<!ll )(?:keep|bear) (?:that|this|it) in mind\b",
        "We travel with a dog, keep that in mind.",
    ),
    Row(
        "wish: you cannot",
        r"\byou (?:cannot|can't) (?:use|run|change|edit|access|install|touch|modify|delete|"
        r"open)\b",
        "You cannot install anything there.",
    ),
    Row(
        "wish: everything has to",
        r"\b(?:whole|total|everything|nothing|nobody|each|every|all)\b"
        r"[^.,;()\n]{0,60}\b(?:may|should|has to|have to|needs? (?:to|an?)|shall)\b"
        r"(?! (?:work|be (?:fine|ok|okay|good|ready|done)|have been)\b)",
        "All of it has to rhyme.",
    ),
    Row(
        "wish: any of it has to",
        r"\b(?<!if )any\b[^.,;()\n]{1,60} (?:should|has to|have to)\b",
        "Any date has to be in UTC.",
    ),
    Row(
        "wish: I prefer",
        r"\bi(?:'d| would)?(?: strongly| really| much| always)? "
        r"(?:prefer(?! (?:not to (?:say|share)|to (?:wait|see|think))\b)|insist)\b",
        "I prefer short answers.",
    ),
    Row(
        "wish: I want you to",
        r"\bi(?:'d| would)? (?:only )?(?:want|like|need|expect) "
        r"(?:you to (?:always|never|call|address|answer|reply|write|use|keep|ask|avoid|stop|"
        r"include|stay|treat))\b",
        "I want you to write in verse.",
    ),
    Row(
        "wish: I don't want",
        r"\bi (?:do not|don't|never) (?:want\b(?! (?:it|to (?:go|be|leave|lose|miss|wait|sound|"
        r"talk|know|think)|you to (?:worry|think|feel))\b)|"
        r"need\b(?! (?:it|that|this|to|help|more)\b))",
        "I don't want a window seat.",
    ),
    Row(
        "wish: I want all of them to be",
        r"\bi(?:'d| would)? (?:want|like|need|expect) (?:all|every|each|any|everything|your)\b"
        r"[^.,;\n]{0,60} to (?:be|have|start|begin|end|include|show|use|stay|fit|work)\b",
        "I need all the rooms to be quiet.",
    ),
    Row(
        "wish: I'd rather",
        r"\bi(?:'d| would) (?:much )?rather (?:you|not|have)\b",
        "I'd rather you ask than guess.",
    ),
    # What somebody does not eat, today or next year.
    Row(
        "wish: I don't eat",
        r"\b(?:i|we) (?:don't|do not|can't|cannot|won't|will not|never) "
        r"(?:eat|drink|fly|drive|pay|accept)\b|"
        r"\b(?:i'm|i am|we're|we are) (?:a |an )?(?:allergic|intolerant|vegetarian|vegan|diabetic|"
        r"coeliac|celiac|colou?r-?blind)",
        "I don't eat meat.",
    ),
    Row(
        "wish: I don't like",
        r"\bi (?:really )?(?:don't|do not) like(?! (?:it|this|that|these|those|the|how|what|where|"
        r"your|him|her|them|to)\b) ",
        "I don't like early flights.",
    ),
    Row(
        "wish: I only want",
        r"\bi(?: would)? only (?:need|want)\b",
        "I only want aisle seats.",
    ),
    Row(
        "wish: the user prefers",
        r"\busers? prefers\b",
        "The user prefers tea.",
    ),
    Row(
        "wish: I'd like to pay",
        r"\bi(?:'d| would) (?:also )?like to (?:use|pay)\b",
        "I'd like to pay with the gift card.",
    ),
    Row(
        "wish: call me",
        r"\bcall me (?!when|back|if|at|on|later|tomorrow|today|about|crazy|old)|"
        r"\b(?:address|refer to) me (?:as|by)\b",
        "Call me Captain.",
    ),
    Row(
        "wish: without asking me",
        r"\bwithout (?:my (?:ok|okay|approval|permission|consent)|asking (?:me|first))\b|"
        r"\b(?:ask|tell|check with) me (?:first|before)\b|"
        r"\b(?:unless|until) i (?:say|tell you|ask)\b",
        "Nothing leaves the house without my okay.",
    ),
    Row(
        "wish: the budget is",
        r"\b(?:budget|limit|cap|ceiling)\b(?: \w{1,20}){0,2} (?:is|of|at) (?:at most )?[$€£¥]?\d",
        "The budget is $400 in total.",
    ),
    Row(
        "wish: at most",
        r"\b(?:at most|no more than|not (?:cost |take )?more than|not exceed|no later than|"
        r"(?<!went )(?<!rose )up to|(?:stay|remain|be|keep[^.\n]{0,40}|answers?|replies)"
        r"(?: \w{1,20})? (?:below|under|within|above))\s{1,4}(?:[$€£¥]\s?)?\d",
        "The trip costs at most 2,350 euros.",
    ),
    # An impersonal statement ("Dogs are not allowed in the park.") mentions none of these.
    Row(
        "person: you",
        r"\b(?:i|me|my|you|your|users?|please)\b",
        "Your replies must rhyme.",
    ),
)

FOR_GOOD: Final[tuple[Row, ...]] = (
    Row(
        "for good: always answer",
        rf"^\W{{0,4}}(?:always|whenever [^,]{{3,100}}, (?:please )?) ?(?:{_VERBS})\b",
        "Always answer in one sentence.",
    ),
)
