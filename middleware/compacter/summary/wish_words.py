"""Words and forms of wishes and conditions in English, which are read anywhere in a sentence."""

from __future__ import annotations

from typing import Final

from compacter.summary.rule_words import Row

WISHES: Final[tuple[Row, ...]] = (
    # Not "That must have been fun."
    Row(
        "wish: it must",
        r"\bmust(?:n't)?\b(?!'ve|"
        r"(?: never| not| always)? have"
        r"(?! (?:an?(?! lot)|no|at least|exactly|one|two|its|their|\d)\b)|"
        r" feel| admit| say|"
        r" be (?:so|very|really|great|nice|hard|tough|kidding|joking|tired|right|wrong|proud|"
        r"the|an?|it)\b)",
        "The folder must stay read-only.",
    ),
    Row(
        "wish: it is not allowed",
        r"\b(?:is|are|'re) (?:strictly |absolutely )?(?:not allowed|forbidden|off[- ]limits|"
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
        r"\b(?<!\bhe )(?<!\bshe )(?:has|needs) to (?:work|run|stay|remain|fit|support|comply|"
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
        "wish: I never travel",
        r"\bi never (?:travel|work|take|sleep|stay|sit|use|buy|wear)\b|"
        r"\b(?:i|we) can only"
        r"(?! (?:see|find|think|imagine|hope|guess|assume|say|agree|remember)\b)|"
        r"\b(?:i'm|i am|we're|we are) on (?:a|an) [^.,\n]{0,30}\b(?:diet|budget)\b",
        "I never work on Sundays.",
    ),
    # What follows from a fact: "My children are small, so keep it simple."
    Row(
        "wish: so keep it",
        r", so (?:please )?(?:keep|plan|avoid|never|always|no|nothing|only|stick|"
        r"(?:don't|do not) (?:use|ever|suggest|write|book|send|include|put|add))\b",
        "My children are small, so keep it short and sweet.",
    ),
    Row(
        "wish: never less",
        r", never (?:less|more|fewer|later|earlier|longer|before|after|on|in)\b",
        "They bill by the hour, never less.",
    ),
    Row(
        "wish: I want to be asked",
        r"\bi(?:'d| would)? (?:want|like|need|expect) to be "
        r"(?:asked|told|informed|notified|consulted|warned|called|addressed|kept)\b",
        "I want to be asked before that.",
    ),
    Row(
        "wish: you are my tutor",
        r"\byou(?:'re| are) (?:my|our) (?:\w{1,20} )?(?:tutor|teacher|editor|assistant|coach|"
        r"guide|secretary|translator|reviewer|proofreader|agent)\b",
        "You are my tutor.",
    ),
    Row(
        "wish: and never use",
        r"\b(?:[,;:]|and|but) (?:please )?(?:never|always|don't|do not) "
        r"(?:use|write|add|send|book|show|mention|include|change|delete|touch|suggest|ask|tell|"
        r"answer|call|put|skip|commit|store|save|share|give(?! up)|reveal|publish|post|print|"
        r"remove|rename|install|deploy|push|merge|run|translate|quote|invent|assume|guess|explain|"
        r"repeat)\b",
        "Mend it but never change the tests.",
    ),
    Row(
        "wish: it should never",
        r"\b(?<!\bi )should (?:always|never)\b(?! have\b)",
        "Passwords should never appear there.",
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
        r"\bwithout (?:my (?:ok|okay|approval|permission|consent|signature|confirmation|"
        r"knowledge)|asking (?:me|first))\b|"
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
        r"\b(?:at most|no more than|no (?:longer|fewer|less|earlier) than|(?<!-)max(?:imum)?|"
        r"not (?:cost |take )?more than|not exceed|no later than|"
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
