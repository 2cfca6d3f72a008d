"""Standing instructions of the user: what a user states for longer than one answer, and what changed it later.

Few and sure. A sentence counts only where its form says that it lasts ("always", "never", "from now on", "whenever
...", "please don't ...", "reply in German"); only what the user wrote can be one, never text of tools or assistants.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence

from compacter.messages.parts import Part
from compacter.summary.sentences import TYPED, Sentence, read

HEADING = "Rules:"
RULE, LATER = "Rule: ", "User: "
"""How a line begins: a rule, and a later statement of the user about one."""

_SHORTEST, _LONGEST, _LONGEST_CHANGE = 8, 320, 200
_SAME = 0.3
"""Share of the fewer words that two statements about the same have in common."""
_MOST_TOPICS, _MOST_CHANGES = 200, 60
"""Rules that a later statement is held against, and later statements that are kept: the newest."""
_SIGNED = re.compile(r"(?:\([^()\n]{1,40}\) )?[^\W\d_][\w.'-]{0,24}(?: [\w.'-]{1,24})?: ")

_OPENING = (
    r"^[^\w<]{0,8}(?:(?:please|also|and|but|so|then|remember|important|note|rule|ok|okay|in particular|again|just|"
    r"by the way|btw|one more thing|oh)\b[,:.!]?\s*){0,3}"
)
_ORDER = re.compile(
    _OPENING + r"(?:always|never(?! (?:mind|saw|seen|been|had|knew|thought|expected))|"
    r"(?:do not|don't)(?! (?:worry|forget|give up|feel|stress|let anything|be (?:shy|afraid|sorry|too hard)|sweat|get me))|"
    r"under no circumstances|at no point|refrain from|avoid|prefer|stick to|from now on|going forward|in future|in the future|"
    r"for the rest of|whenever|every time|each time|try to (?:avoid|minimi[sz]e|keep|limit)|no matter what|whatever happens|"
    r"(?:make sure|ensure) (?:to|that|all|every|each|no|not|any|we|you(?! (?:take|get|rest|enjoy)))|instead,? (?:try to )?(?:use|try|call|write|run|create)|be sure to|only (?:use|write|answer|reply|respond|commit|touch|change|edit|run|add|show|include|ever|do|make|work|return|ask|call|read|send|create)|"
    r"remember to|keep (?:all|every|your|in mind|my|replies|answers|responses|messages|old|everything)|"
    r"you (?:must|should always|should never|may not|must not|should not|shouldn't|may only|can only|are not allowed|need to always|"
    r"have to always)|you can (?:not|only))\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"(?:[,;:–—-] |\b(?:and|but) )(?:please )?(?:never(?! (?:mind|been|had|saw|seen))|always (?:use|ask|keep|check|write|add|run|put|"
    r"include|answer|reply|respond|call|show|tell)|do not (?!have|know|want|need|think|like|see)|under no circumstances|"
    r"(?:you|it|they|there|that) must(?! (?:have|be so))|no matter what|(?:please )?prefer using)\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    _OPENING
    + r"(?:if|when|whenever|(?:before|after) (?:you|every|each|any)|for (?:all|every|each|any|test)|in (?:all|every|each))\b"
    r"(?! (?:yes|no|not|that|this|it|possible|so|needed|necessary|changing|you (?:have|want|wish|need|like|would like|prefer|are|see|get|ever))\b)[^,\n]{3,140}, (?:please |always |first |then |"
    r"just |simply |you must |you should |do not |don't |never |try to |make sure |be sure |ensure )*"
    r"(?:use|run|re-?run|try|make|issue|write|explain|ask|tell|check|add|keep|stop|include|say|reply|answer|respond|let|call|"
    r"wait|prefer|avoid|do|don't|never|give|put|open|create|capture|report|return|describe|start|skip|ignore|treat|conduct|"
    r"drop|omit|ensure|insert|minimi[sz]e|reuse|mention|confirm|show|warn|quote|cite|format|round|convert|be stricter)\b",
    re.IGNORECASE,
)
_MUST = re.compile(
    r"\bmust(?:n't| not| never| always| only)?\b(?!'ve| have| feel| admit| say| be (?:so|very|really|great|nice|hard|tough|awesome|"
    r"amazing|fun|exciting|proud|the|a|an|there|tired|some|it)\b)|"
    r"\b(?:is|are) (?:strictly |absolutely )?(?:not allowed|forbidden|off[- ]limits|mandatory|prohibited)\b|"
    r"\b(?:whole|total|everything|nothing|nobody|each|every|all)\b[^.\n]{0,60}\b(?:may|should|has to|have to|needs? to|shall)\b",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    r"\b(?:at most|no more than|not (?:cost |take |be )?more than|not exceed|(?:does|do|can)(?:n't|not| not) exceed|no later than|"
    r"up to|(?:stay|remain|be|keep[^.\n]{0,40}|answers?|replies|responses)(?: \w+)? (?:below|under|within|above))\s+"
    r"(?:[$€£¥]\s?)?\d",
    re.IGNORECASE,
)
_WISH = re.compile(
    r"\b(?:I(?:'d| would)?(?: strongly| really| much| always)? (?:prefer(?! not to (?:say|share|give))|insist)|users? prefers|"
    r"I(?:'d| would)? (?:want|like|need|expect|only want) (?:you to (?:always|never|call|address|answer|reply|respond|write|use|keep|speak|"
    r"ask|avoid|stop|include|stay|treat|refer)|all (?:of )?(?:your|the)|every|each|only)|I only (?:need|want)|I(?:'d| would) (?:also )?like to (?:use|pay)|I (?:do not|don't) need|I (?:do not|don't|never) want (?:you to|any|to see)|"
    r"I would only want|call me (?!when|back|if|at|on|later|tomorrow|today|about|crazy|old|silly)|(?:address|refer to) me (?:as|by)|"
    r"without (?:my (?:ok|okay|approval|permission|consent|explicit|say)|asking (?:me|first)|first asking)|ask (?:me )?(?:first|before)|"
    r"check with me (?:first|before))\b|\b(?:ask|tell) me before\b",
    re.IGNORECASE,
)
_WE = re.compile(
    r"^[^\w<]{0,8}(?:also,? |and |but |so |remember,? )?we (?:also )?(?:always|never|only|(?:don't|do not) (?:use|test|allow|want any|write|"
    r"commit|ship|deploy|support)|should (?:always|never)|must)\b",
    re.IGNORECASE,
)
_STYLE = re.compile(
    _OPENING + r"(?:(?:reply|answer|respond|write|speak|talk|communicate|format|give|show|express|phrase|keep|"
    r"name|spell|round|cite|use)\b[^.\n]{0,80}"
    r"(?:\bin (?:(?:plain |simple |british |american |formal |informal )?(?:english|german|french|spanish|italian|portuguese|dutch|russian|"
    r"polish|turkish|arabic|hindi|chinese|mandarin|cantonese|japanese|korean|swedish|danish|norwegian|finnish|greek|czech|ukrainian)|"
    r"utc|metric|celsius|euros?|dollars|bullet points|lower ?case|upper ?case|markdown|plain text|mebibytes|kilometres|[a-z]{1,10}_case)\b|"
    r"\b(?:every|each|all) (?:your )?(?:answer|reply|replies|response|message|commit|number|price|amount|date|citation|time(?=s\b))|"
    r"\b(?:short|brief|concise|formal|informal|polite)\b|\bsystem everywhere\b|\buntil I (?:say|tell|ask)\b)|"
    r"no (?:emojis?|markdown|jargon|bullet points|small talk|apologies|abbreviations|comments|unit tests|new dependencies)\b)",
    re.IGNORECASE,
)
_DESCRIBES = re.compile(
    r"^\W{0,4}(?:[a-z]|(?:The|This|That|These|A|An|It|As|Because|Since|They|Which|There|Of|In|To|For)\b)"
)
_DESCRIPTIONS = (_ORDER, _CONDITION, _MUST, _LIMIT, _WISH, _WE, _STYLE)
_EVERY = re.compile(
    _OPENING
    + r"(?:(?!(?:love|enjoy|like|almost|nearly|not|in|on|at|of|for|with|from|by|after|during)\b)[a-z]+ (?:every|each) \w|"
    r"(?:use|include|keep|limit|ask|check|treat|ignore|discard|write|run|work|add|return|report|stop|mention|render|emit)\b[^.\n]{0,100}"
    r"\b(?:only|unless|whenever|when (?:applicable|possible|needed|in doubt|the|a|an|you)|where applicable)\b)|"
    r"\byou (?:cannot|can't|can not) (?:use|run|change|edit|access|install|touch|modify|delete|open)\b|"
    r"\b(?:is|are) only (?:available|allowed|permitted)\b|\bonly\b\W{1,6}no ",
    re.IGNORECASE,
)
_ENGLISH = (_EVERY, _CLAUSE, _ORDER, _CONDITION, _MUST, _LIMIT, _WISH, _WE, _STYLE)
# Not English. First the words that are enough by themselves, then those that only count in an order.
_SURE = re.compile(
    r"\b(?:ab jetzt|ab sofort|von nun an|künftig|auf keinen fall|keinesfalls|unter keinen umständen|bitte (?:nie|niemals|immer|kein|nicht|nur)|"
    r"(?:du|sie) (?:darfst|dürfen|sollst|sollen|musst|müssen)(?: \w+){0,3} (?:nicht|nie|niemals|kein\w*|immer|nur)|(?:duze|sieze) mich|"
    r"nenn(?:e|en sie)? mich|ich möchte,? dass (?:du|sie)|ich bevorzuge|"
    r"désormais|dorénavant|à partir de maintenant|en aucun cas|sous aucun prétexte|il ne faut (?:pas|jamais)|(?:tu|vous) (?:ne )?(?:dois|devez)|"
    r"appelle(?:z)?-moi|(?:tutoie|vouvoie)(?:z)?-moi|je préfère|sans mon accord|"
    r"a partir de ahora|de ahora en adelante|en ningún caso|bajo ningun[ao] \w+|llám[ae]me|tutéame|prefiero|sin mi (?:permiso|aprobación)|"
    r"a partir de agora|de agora em diante|em hipótese alguma|chame-me|prefiro|sem a minha|d'ora in poi|in nessun caso|chiamami|preferisco|"
    r"с этого момента|ни в коем случае|называй меня|отныне|нельзя|запрещено|od teraz|pod żadnym pozorem|nie wolno)\b",
    re.IGNORECASE,
)
_LASTING = re.compile(
    r"\b(?:niemals|nie|immer|stets|ausschließlich|höchstens|jamais|toujours|uniquement|nunca|jamás|siempre|únicamente|sempre|mai|"
    r"apenas|somente|никогда|всегда|только|обязательно|nigdy|zawsze|wyłącznie|nooit|altijd|aldrig|alltid|asla|daima|daima)\b|"
    r"\b(?:antworte|antworten sie|schreibe?|sprich|réponds|répondez|écris|parle|responde|escribe|habla|rispondi|scrivi|responda|escreva|"
    r"отвечай|пиши|odpowiadaj|pisz)\b[^.\n]{0,40}\b(?:auf|en|in|em|на|по)\b",
    re.IGNORECASE,
)
_TELLS = re.compile(
    r"^\W{0,4}(?:ich|wir|er|es|das|mein\w*|man|da|je|il|elle|on|nous|ça|c'|mon|ma|j'|yo|él|ella|nosotros|mi|eu|ele|ela|nós|meu|minha|io|lui|lei|"
    r"noi|я|мы|он|она|мой|моя|это|ja|ik|jag|jeg|hij|wij)\b|\b(?:avons|habe|haben|hatte|hemos)\b",
    re.IGNORECASE,
)
_FORBIDS = re.compile(
    r"^\W{0,4}(?:por favor,? |s'il te plaît,? |per favore,? )?(?:ne |n'|no (?:uses|hagas|borres|toques|envíes|cambies|modifiques|"
    r"ejecutes|escribas|publiques|compartas|pongas|añadas)\b|non (?:usare|fare|modificare|toccare|inviare|cancellare)\b|"
    r"não (?:use|faça|envie|apague|altere|mude|execute|toque)\b|не (?:используй|делай|трогай|меняй|удаляй|отправляй|пиши)\b)",
    re.IGNORECASE,
)
_UNSPACED = re.compile(
    "绝不|绝对不|永远不|不要(?!紧)|不得|不许|不准|禁止|切勿|请勿|务必|必须|一定要|始终|总是用|只能用|只用|只使用|不超过|今后|以后(?:都|请|不)|从现在(?:起|开始)|"
    "(?:请|都)?用(?:中文|英文|英语|日语|德语|法语)(?:回答|回复|写)|叫我|称呼我|每次都|絕不|不許|務必|必須|一定要|從現在(?:起|開始)|請勿|"
    "絶対に|決して|必ず|常に|今後は|これからは|(?:し|使わ|書か|送ら|変え)ないで|てはいけません|禁止|以内(?:で|に)|と呼んで|日本語で(?:答|書|返)|"
    "절대|항상|반드시|하지 ?마|마세요|앞으로는|금지|يجب ألا|يجب أن|لا تستخدم|لا ترسل|لا تحذف|دائما|أبدا"
)
_UNSPACED_TELLS = re.compile(
    "^(?:我(?!希望|要求|要你|想让你|需要你|想要你)|他|她|它|这|那|私|僕|俺|彼|これ|나는|저는|그는)"
)
_LIFTS = re.compile(
    r"\b(?:no longer|(?:not|n't)\b[^.\n]{0,60}\b(?:any ?more|anymore)|again|back to|forget|ignore (?:my|the|that|what)|instead|scrap|cancel|withdraw\w*|"
    r"lift(?:ed)?|drop (?:the|that)|you (?:may|can|are allowed)|is (?:fine|ok|okay|allowed|permitted)|are (?:fine|ok|okay|allowed|permitted)|"
    r"doesn't matter|don't (?:have|need) to|changed my mind|never ?mind|from now on|as of now|now|moved|changed|raised|lowered|extended|switch|"
    r"nicht mehr|wieder|doch|vergiss|stattdessen|jetzt|darfst|egal|à nouveau|de nouveau|ne[^.\n]{0,40} plus|oublie|maintenant|peux|"
    r"ya no|de nuevo|olvida|ahora|puedes|não precisa|agora|pode|non più|adesso|puoi|больше не|теперь|можно|już nie|teraz|możesz)\b|"
    "不再|不用再|可以|取消|改成|改为|现在|忘掉|算了|もう|取り消|やめ|変更|かまいません|構いません|いいです|이제|더 이상|취소|돼요|바꿔",
    re.IGNORECASE,
)
_POINTS = re.compile(
    r"^[^\w<]{0,8}(?:ensure|don't|do not|make sure)\b[^.\n]{0,80}\b(?:those|this (?:time|one|file|test)|these|for now)\b|\b(?:just this once|this time only|for now)\b",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^(?:[-*•+>]\s{1,4}|\(?\d{1,3}[.)]\s{1,4}|[a-z]\)\s)")
_LABEL = re.compile(r"^\*\*[^*\n]{1,40}\*\*:?\s?[-–—:]?\s(?=\S)|^\*\*[^*\n]{1,40}:\*\*\s(?=\S)")
_AT_HAND = re.compile(
    r"^\W{0,4}(?:please |also |and |but |no,? )?(?:don't|do not|make sure|ensure|only|keep|avoid|use)\b[^\n]*?(?:\bthe\b|[a-z]_[a-z]|[a-z][A-Z]|[A-Z]_[A-Z]|\w\(|--\w|`)"
)
"""An order about the code or text at hand, typed in passing: no capital, and a definite thing."""
_ABOUT_ONESELF = re.compile(
    r"^\W{0,4}(?:(?:yes|no|well|oh|yeah|sure|ok|okay|actually|thanks|hi|so|and|but)\b[,.!]?\s*){0,2}"
    r"(?:I(?:'m|'ll|'ve)?(?! (?:would|want|need|expect|insist|only|do not want|don't want|strongly|really|always prefer|never want|prefer|like)\b|'d\b)|"
    r"he|she|they|his|her|their|it(?:'s|'ll)?|that(?:'s|'ll)?|there(?:'s)?|you (?:never|always|guys)|what|how|why|thanks?)\b(?!['’]d (?:prefer|like))",
    re.IGNORECASE,
)
_NO_PROSE = re.compile(
    r"^[+\s]{0,8}(?:#|//|/\*|--\s|>>>|\$ |\||<(?!/?(?:b|i|em|strong)>)|\w{1,40}(?:Error|Exception|Warning)\b|(?:error|warning|fatal|failed|failure|usage|traceback|"
    r"exception|note: (?:in|the)|hint|tip|caveat|info|debug)\b\s*[:\[]|\[|\d{1,6}[:|→]|\(use )",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+")
_UNSPACED_LETTER = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
_EMPTY = frozenset(
    [
        "always",
        "never",
        "please",
        "from",
        "with",
        "that",
        "this",
        "these",
        "those",
        "must",
        "should",
        "would",
        "could",
        "have",
        "has",
        "had",
        "will",
        "shall",
        "may",
        "might",
        "can't",
        "don't",
        "doesn't",
        "when",
        "whenever",
        "every",
        "each",
        "also",
        "again",
        "back",
        "into",
        "only",
        "more",
        "than",
        "then",
        "they",
        "them",
        "there",
        "their",
        "your",
        "yours",
        "mine",
        "ours",
        "here",
        "what",
        "which",
        "where",
        "about",
        "after",
        "before",
        "make",
        "sure",
        "keep",
        "want",
        "like",
        "need",
        "prefer",
        "used",
        "using",
        "longer",
        "user",
        "rule",
        "anymore",
        "instead",
        "now",
        "you",
        "may",
        "can",
        "all",
        "any",
        "not",
        "and",
        "the",
        "for",
        "are",
        "but",
        "immer",
        "niemals",
        "bitte",
        "nicht",
        "mehr",
        "wieder",
        "jetzt",
        "dass",
        "eine",
        "einen",
        "einer",
        "oder",
        "aber",
        "auch",
        "noch",
        "nach",
        "toujours",
        "jamais",
        "plus",
        "avec",
        "pour",
        "dans",
        "cette",
        "maintenant",
        "siempre",
        "nunca",
        "para",
        "este",
        "esta",
        "como",
        "ahora",
    ]
)


def is_rule(sentence: str) -> bool:
    """Whether ``sentence``, said by the user, is meant to hold beyond the next answer."""
    plain = sentence.replace("’", "'").strip()
    plain = _LABEL.sub("", _BULLET.sub("", plain)).replace("**", "")
    if not len(plain) + len(_UNSPACED_LETTER.findall(plain)) >= _SHORTEST or len(plain) > _LONGEST:
        return False
    if plain.rstrip(" \"'*_)").endswith(("?", "？", "؟", ":", "：")) or _NO_PROSE.match(plain) or _POINTS.search(plain):
        return False
    if _AT_HAND.match(plain):
        return False
    if not plain.isascii():
        if _UNSPACED.search(plain):
            return not _UNSPACED_TELLS.match(plain)
    if _SURE.search(plain):
        return True
    if (_LASTING.search(plain) or _FORBIDS.match(plain)) and not _TELLS.search(plain):
        return True
    if _WISH.search(plain) or _LIMIT.search(plain):
        return True
    if _ABOUT_ONESELF.match(plain):
        return False
    if _DESCRIBES.match(plain):
        return any(pattern.search(plain) for pattern in _DESCRIPTIONS)
    return any(pattern.search(plain) for pattern in _ENGLISH)


def takes_back(sentence: str) -> bool:
    """Whether ``sentence`` has a word with which people lift, change or drop what they said."""
    return _LIFTS.search(sentence) is not None


def words(text: str) -> set[str]:
    """The words that tell what ``text`` is about, without endings; pairs of letters where no spaces part words."""
    found: set[str] = set()
    for word in _WORD.findall(text.casefold()):
        if _UNSPACED_LETTER.search(word):
            found.update(word[at : at + 2] for at in range(len(word) - 1))
        elif word not in _EMPTY and (len(word) > 3 or not word.isalpha()):
            found.add(word[:6].rstrip("s"))
    return found


def overlap(some: set[str], others: set[str]) -> float:
    """The share of the smaller set of words that both hold."""
    return len(some & others) / min(len(some), len(others)) if some and others else 0.0


def lines(
    parts: Sequence[Part], prior: Sequence[str] = (), declared: Sequence[str] = (), budget: int = 2_000
) -> list[str]:
    """Return the rules in force and what the user said of them later, oldest first, in at most ``budget`` characters.

    ``prior`` are the lines of an earlier summary, ``declared`` the rules that the program itself sets: they always
    come first and whole, whatever the budget. Of the rest a later statement is kept before what it changes, so no
    rule stands without it; then what was typed before what stands in long documents, and the newer before the older.
    """
    fixed = list(dict.fromkeys(RULE + rule for rule in declared))
    entries: dict[str, int] = {}
    for line in prior:
        if line.startswith((RULE, LATER)) and line not in fixed:
            entries[line] = 0
    for line, size in _said(parts, [line for line in (*fixed, *entries)]):
        if line not in fixed:
            entries.pop(line, None)
            entries[line] = size
    for line in [line for line in entries if line.startswith(LATER)][:-_MOST_CHANGES]:
        del entries[line]
    return fixed + _fitting(entries, budget - sum(len(line) + 1 for line in fixed))


def _said(parts: Sequence[Part], known: list[str]) -> Iterator[tuple[str, int]]:
    """Yield the lines that ``parts`` add to ``known``, each with the size of the message it is from."""
    told = [part for part in parts if part.role == "user" and part.kind == "text" and part.text.strip()]
    if sum(1 for part in told if _SIGNED.match(part.text.lstrip())) * 2 > len(told):
        return  # People who sign their messages talk to one another.
    sentences = list(read(told))
    common = Counter(word for sentence in sentences for word in words(sentence.text))
    most = max(4, len(sentences) // 8)
    topics = deque((words(line.partition(": ")[2]) for line in known), _MOST_TOPICS)
    judged: dict[str, bool] = {}
    for sentence in sentences:
        text = sentence.text
        if sentence.prose and text not in judged:
            judged[text] = is_rule(text)
        about = {word for word in words(text) if common[word] <= most}
        if sentence.prose and judged[text]:
            yield RULE + text, sentence.size
        elif sentence.prose and topics and _changes(sentence, about, topics):
            yield LATER + text, 0
        else:
            continue
        topics.append(about)


def _changes(sentence: Sentence, about: set[str], topics: Iterable[set[str]]) -> bool:
    """Whether a typed statement says something new of what one of the rules is about."""
    if sentence.size > TYPED or len(sentence.text) > _LONGEST_CHANGE or sentence.text.endswith(("?", "？")):
        return False
    return takes_back(sentence.text) and any(overlap(about, topic) >= _SAME for topic in topics)


def _fitting(entries: dict[str, int], room: int) -> list[str]:
    """Choose lines for ``room`` characters; no rule without what the user said of it later."""
    listed = list(entries)
    changes = {place: words(line) for place, line in enumerate(listed) if line.startswith(LATER)}

    def rank(place: int) -> tuple[bool, bool, int]:
        return place not in changes, entries[listed[place]] > TYPED, -place

    chosen: set[int] = set()
    for place in sorted(range(len(listed)), key=rank):
        cost = len(listed[place]) + 1
        if cost > room:
            continue
        about = words(listed[place])
        later = {other for other, said in changes.items() if other > place and overlap(about, said) >= _SAME}
        if place in changes or chosen.issuperset(later):
            chosen.add(place)
            room -= cost
    return [listed[place] for place in sorted(chosen)]


def divide(text: str) -> tuple[str, list[str]]:
    """Return a summary that ``timeline`` wrote without its rules, and the lines of these."""
    story, heading, kept = f"\n\n{text}".rpartition(f"\n\n{HEADING}\n")
    return (story.strip(), kept.splitlines()) if heading else (text, [])
