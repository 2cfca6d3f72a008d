"""Words and forms by which standing instructions are known, and those that speak against one.

All patterns are for lower case, unless they are for the beginning of a line as it is written. They
run in linear time: only bounded repeats, not nested.
"""

from __future__ import annotations

import re

_LANGUAGES = (
    "english|german|french|spanish|italian|portuguese|dutch|russian|polish|turkish|arabic|hindi|chinese|mandarin|"
    "japanese|korean|swedish|danish|norwegian|finnish|greek|czech|ukrainian"
)
_VERBS = (
    "use|run|re-?run|try|make|issue|write|explain|ask|tell|check|add|keep|stop|include|say|reply|answer|respond|let|call|"
    "wait|prefer|avoid|do|don't|never|give|put|open|create|capture|report|return|describe|start|skip|ignore|treat|conduct|"
    "drop|omit|ensure|insert|minimi[sz]e|reuse|mention|confirm|show|warn|quote|cite|format|round|convert"
)


def _any(*words: str, unspaced: str) -> re.Pattern[str]:
    """Return a pattern of whole words, and of ``unspaced`` words at any place in a script without
    spaces.
    """
    return re.compile(rf"\b(?:{'|'.join(words)})\b|(?=[^\0-\x7f])(?:{unspaced})")


# All patterns are for lower case. Beginnings of orders; words before them are matched once.
ORDERS = re.compile(
    r"[^\w<]{0,8}(?:(?:please|also|and|but|so|then|remember|important|note|rule|ok|"
    r"okay|in particular|just|btw|oh)\b"
    r"[,:.!]?\s*){0,3}(?:"
    # Never restart the database. Do not touch the archive. (Never mind; don't worry.)
    r"(?:never(?! (?:mind|again|saw|seen|been|had|knew|thought))|always(?! (?:happy|"
    r"glad|nice|fun|on))|"
    r"under no circumstances|at no point|refrain from)\b|"
    r"(?:do not|don't)(?! (?:worry|forget|give up|feel|stress|be (?:shy|afraid|"
    r"sorry)|sweat|cry|panic|get me))\b"
    r"(?![^.,\n]{0,80}\byet(?:,|\W{0,3}$))|"
    # From now on, ... Whatever happens, ...
    r"(?:from (?:now|here|today|this (?:point|moment|day)) on|going forward|"
    r"in (?:the )?future|for the rest of|"
    r"whatever (?:happens|you do))\b|"
    r"(?:avoid|prefer|stick (?:to|with)|no matter what|remember to|be (?:brief|"
    r"concise|polite|honest)|"
    r"try to (?:avoid|minimi[sz]e|keep|limit))\b|"
    # Make sure that all numbers have units.
    r"(?:make|be) sure (?:to|that|all|every|no|not|any|we|you)\b(?! (?:take|get|rest|sleep|enjoy))|"
    # Only use the staging database. Instead, use the script.
    r"only (?:use|write|answer|reply|commit|touch|change|edit|run|add|show|do|make|"
    r"work|return|ask|call|read|send)\b|"
    r"instead,? (?:try to )?(?:use|try|call|write|run|create)\b|"
    r"keep (?:all|every|your|in mind|my|replies|answers|responses|messages|old|everything)\b|"
    # You must ask first. You can only send one mail.
    r"you (?:must(?! be (?:kidding|joking|tired|right|proud|so)\b)|"
    r"may not|should (?:always|never|not)|shouldn't|(?:may|can) only|are not allowed)\b|"
    # We never deploy on a Friday. We also don't test other people's code.
    r"we (?:also )?(?:(?:always|never|only)(?! (?:had|got|was|were|did|went|saw|"
    r"heard|knew|made|came|took|"
    r"met|said|told|found|\w+ed)\b)|"
    r"must|should (?:always|never)|"
    r"(?:don't|do not) (?:use|test|allow|commit|ship))\b|"
    # Check each invoice twice. Answer only when you are sure.
    r"(?!(?:love|enjoy|like|almost|not|in|on|at|of|for|with|from|by|after|"
    r"during)\b)[a-z]+ (?:every|each) \w"
    r"(?![^.\n]{0,100}\b(?:this|below|today|now)\b)|"
    r"(?:use|include|keep|limit|ask|check|treat|ignore|discard|write|run|work|add|"
    r"return|report|stop|mention)\b"
    r"[^.\n]{0,100}\b(?:only|unless|whenever|when (?:applicable|possible|needed|"
    r"in doubt|the|an?|you)|"
    r"where applicable)\b|"
    # If a test fails, tell me. Before every release, run the linter. (If yes, do it.)
    r"(?:if|when|whenever|(?:every|each) time|(?:before|after) (?:you|every|each|any)|"
    r"for (?:all|every|each|any|test)|in (?:all|every))\b"
    r"(?! (?:yes|no|not|that|this|it|possible|so|needed|you (?:have|want|wish|need|"
    r"like|would like|prefer|are|see|"
    r"get))\b)"
    r"[^,\n]{3,140}, (?:please |always |first |then |just |simply |you (?:must|"
    r"should) |do not |try to |make sure )?"
    rf"(?:{_VERBS})\b|"
    # Reply in German. Give all amounts in euros. Keep every answer short. No emojis.
    r"(?:reply|answer|respond|write|speak|talk|communicate|format|give|show|express|"
    r"phrase|keep|name|spell|round|"
    r"cite|use)\b"
    rf"[^.\n]{{0,80}}(?:\bin (?:(?:plain|simple|british|american) )?(?:{_LANGUAGES}|"
    rf"utc|metric|celsius|"
    rf"euros?|dollars|"
    r"bullet points|lower ?case|markdown|"
    r"(?:plain|simple) (?:text|words|terms|language))\b|\b(?:every|each|"
    r"all) (?:your )?(?:answers?|repl\w+|"
    r"messages?|prices?|amounts?|dates?|times)\b|"
    r"\b(?:short|brief|concise|formal|informal|polite)\b|\buntil i (?:say|tell|ask)\b)|"
    r"use [^.,\n]{0,30}\b(?:spelling|units|notation|syntax)\b|"
    r"no (?:emojis?|markdown|jargon|bullet points|small talk|apologies|"
    r"abbreviations|unit tests|new dependencies)\b|"
    # Replies should be short. (That should be fine.)
    r"(?!(?:i|you|we|it|that|this|these|he|she|they|there|what|how|who|why|where|"
    r"everything|nobody|but|and|so|if|"
    r"when)\b)[a-z][^.,;:()\n]{2,50}(?<! it)(?<! that)(?<! this) should (?:always |"
    r"never |not |only )?"
    r"(?:be(?! (?:\w+ing|here|there|back|ready|done|fine|ok|okay)\b)|"
    r"have(?! \w+(?:ed|en|ne)\b)|use|show|start|"
    r"end|support|fit|stay)\b|"
    # Ne modifie jamais ce fichier. No borres nada.
    r"(?:por favor,? |s'il te plaît,? )?(?:ne |n'|no (?:me llames|uses|hagas|digas|"
    r"menciones|incluyas|"
    r"sugieras|borres|toques|envíes|cambies|modifiques|escribas|"
    r"compartas)\b|não (?:use|faça|apague|mude|altere|envie|mencione|partilhe|"
    r"compartilhe|sugira)\b|"
    r"не (?:предлагай|трогай|пиши|меняй|удаляй|используй|добавляй|упоминай|отправляй)(?:те)?\b))"
)
WISHES = re.compile(
    r"\b(?:"
    # The folder must stay read-only. (That must have been fun.)
    r"must(?:n't| not| never| always| only)?\b(?!'ve| have| feel| admit| say|"
    r" be (?:so|very|really|great|nice|"
    r"hard|tough|kidding|joking|tired|right|wrong|the|an?|it)\b)|"
    r"(?:is|are) (?:strictly |absolutely )?(?:not allowed|forbidden|off[- ]limits|"
    r"mandatory|prohibited|"
    r"only (?:available|allowed))\b|"
    r"you (?:cannot|can't) (?:use|run|change|edit|access|install|touch|modify|delete|open)\b|"
    # Each report should have a date.
    r"(?:whole|total|everything|nothing|nobody|each|every|"
    r"all)\b[^.,;()\n]{0,60}\b(?:may|should|has to|have to|"
    r"needs? (?:to|an?)|shall)\b(?! (?:work|be (?:fine|ok|okay|good|ready|done)|"
    r"have (?:to|been))\b)|"
    # I prefer short answers. I'd like you to call me Captain. I don't want any emojis.
    r"i(?:'d| would)?(?: strongly| really| much|"
    r" always)? (?:prefer(?! not to (?:say|share))|insist)\b|"
    r"i(?:'d| would)? (?:only )?(?:want|like|need|expect) (?:you to (?:always|never|"
    r"call|address|answer|reply|"
    r"write|use|keep|ask|avoid|stop|include|stay|treat))\b|"
    r"i (?:do not|don't|never) (?:want\b(?! (?:it|to (?:go|be|leave|lose|miss|wait|"
    r"sound|talk|know|think)|"
    r"you to (?:worry|think|feel))\b)|need\b(?! (?:it|that|this|to|help|more)\b))|"
    r"i(?: would)? only (?:need|want)\b|"
    r"users? prefers\b|i(?:'d| would) (?:also )?like to (?:use|pay)\b|"
    r"call me (?!when|back|if|at|on|later|tomorrow|today|about|crazy|old)|"
    r"(?:address|refer to) me (?:as|by)\b|"
    # ... without asking me. Tell me before you buy anything.
    r"without (?:my (?:ok|okay|approval|permission|consent)|asking (?:me|first))\b|(?:ask|tell|"
    r"check with) me (?:first|before)\b|(?:unless|until) i (?:say|tell you|ask)\b|"
    # The budget is $400 in total.
    r"(?:budget|limit|cap|ceiling)\b(?: \w+){0,2} (?:is|of|at) (?:at most )?[$€£¥]?\d|"
    # At most 2,350 euros. Below 120 words.
    r"(?:at most|no more than|not (?:cost |take )?more than|not exceed|"
    r"no later than|(?<!went )(?<!rose )up to|"
    r"(?:stay|remain|be|keep[^.\n]{0,40}|answers?|replies)(?: \w+)? (?:below|under|"
    r"within|above))\s+(?:[$€£¥]\s?)?\d)"
)

PERSONS = re.compile(r"\b(?:i|me|my|you|your|users?|please)\b")
"""Persons whom an impersonal statement ("Dogs are not allowed in the park.") does not mention."""

# Other languages.
LASTS = _any(
    r"ab (?:jetzt|sofort)|von nun an|künftig|in zukunft|auf keinen fall|keinesfalls|"
    r"unter keinen umständen|ich bevorzuge",
    (
        r"bitte (?:\w+ )?(?:nie|niemals|immer|kein\w*|nicht|nur)|(?:duze|sieze|"
        r"nenne?) mich|ich möchte,? dass (?:du|sie)"
    ),
    (
        r"(?:du|sie) (?:darfst|dürfen|sollst|sollen|musst|müssen)(?: \w+){0,3} (?:nicht|"
        r"nie|niemals|kein\w*|immer|nur)"
    ),
    (
        r"désormais|dorénavant|à partir de maintenant|en aucun cas|sous aucun prétexte|"
        r"il ne faut (?:pas|jamais)"
    ),
    r"(?:tu|vous) (?:ne )?(?:dois|devez)|appelle(?:z)?-moi|(?:tutoie|vouvoie)(?:z)?-moi|je préfère|"
    r"sans mon accord",
    (
        r"a partir de ahora|de ahora en adelante|en ningún caso|llám[ae]me|tutéame|"
        r"prefiero|sin mi permiso"
    ),
    r"a partir de agora|de agora em diante|em hipótese alguma|chame-me|prefiro|"
    r"d'ora in poi|in nessun caso|"
    r"chiamami|preferisco",
    (
        r"с этого момента|ни в коем случае|называй меня|отныне|нельзя|запрещено|"
        r"od teraz|pod żadnym pozorem|nie wolno"
    ),
    # "Nie" is also the Polish "not", "mai" also the German and the French "May".
    (
        r"niemals|(?<=\w )nie(?![^.\n]{0,200}[ąćęłńóśźż])|immer|stets|ausschließlich|"
        r"höchstens|jamais|toujours|uniquement"
    ),
    (
        r"nunca|jamás|siempre|únicamente|sempre|non [^.\n]{0,40}\bmai|mai più|никогда|"
        r"всегда|только|обязательно"
    ),
    r"nigdy|zawsze|wyłącznie|nooit|altijd|aldrig|alltid|asla|daima",
    r"(?:antworte|schreibe?|sprich|réponds|répondez|écris|parle|responde|escribe|"
    r"habla|rispondi|scrivi|responda|"
    r"отвечай|пиши)\b[^.\n]{0,40}\b(?:auf|en|in|em|на|по)",
    unspaced=r"绝不|绝对不|永远不|不要(?!紧)|不得|不许|不准|禁止|切勿|请勿|务必|必须|一定要|"
    r"始终|只能用|只用|不超过|今后|以后(?:都|请|不)|"
    r"从现在(?:起|开始)|(?:请|都)用(?:中文|英文|英语|日语|德语|法语)|叫我|称呼我|"
    r"每次都|絕不|不許|務必|必須|從現在(?:起|開始)|請勿|"
    r"絶対に|決して|必ず|常に|今後は|これからは|(?:し|使わ|書か|送ら|変え)ないで|"
    r"てはいけません|以内[でに]|と呼んで|日本語で(?:答|書|返)|"
    r"절대|항상|반드시|하지 ?마|마세요|앞으로는|금지|يجب ألا|يجب أن|لا تستخدم|"
    r"لا ترسل|لا تحذف|دائما|أبدا",
)
REPORTED = re.compile(
    r"^(?:my|the|his|her|their|our|he|she|they|it|\w+'s)\b[^,.]{0,30}\b(?:says?|"
    r"said|told|wrote|claims?)\b|"
    r",[\"'”]? (?:\w+ )?(?:said|says|wrote) |, i (?:think|guess|believe)\W{0,3}$"
)
"""Statements of other people, or of which the user is not sure."""
TELLS = re.compile(
    r"^\W{0,4}(?:ich|wir|er|es|das|mein\w*|man|je|il|elle|on|nous|ça|c'|mon|ma|j'|"
    r"yo|él|ella|mi|eu|ele|ela|meu|minha|"
    r"io|lui|noi|я|мы|он|она|мой|моя|это|ja|ik|jag|jeg|hij|wij)\b|\b(?:avons|habe|"
    r"haben|hatte|hemos)\b|"
    r"\b(?:he|ha|han) \w+do\b|"
    r"^(?:我(?!希望|要求|要你|想让你|需要你)|他|她|它|这|那|私|僕|俺|彼|これ|나는|저는|그는)"
)

# Lines that are not instructions, whatever words they have.
NO_PROSE = re.compile(
    r"[+\s]{0,8}(?:#|assert |raise |//|/\*|--\s|>>>|\$ |\||<(?!/?(?:b|i|em|"
    r"strong)>)|\[|\d{1,6}[:|→]|\(use )|"
    r"\s{0,8}(?:\w{1,40}(?:error|exception|warning)|error|warning|fatal|failed|"
    r"failure|usage|traceback|exception|"
    r"hint|tip|caveat|info)\b\s?[:\[]"
)
AT_HAND = re.compile(
    r"^\W{0,4}(?:please |also |and |but |no,? )?(?:don't|do not|make sure|ensure|"
    r"only|keep|avoid|use)\b[^\n]*?"
    r"(?:\bthe\b|[a-z]_[a-z]|[a-z][A-Z]|[A-Z]_[A-Z]|\w\(|--\w|`)"
)
"""An order about the present code or text, typed informally: without a capital, and about a
specific thing."""
MARK = re.compile(r"^(?:[-*•+>]\s{1,4}|\(?\d{1,3}[.)]\s{1,4}|[a-z]\)\s)")
SIGNED = re.compile(
    r"^(?:[(\[][^()\[\]\n]{1,40}[)\]] )?"
    r"(?:(?:Dr|Mrs?|Ms|Prof|Herr|Frau)\.? (?:[A-Z][\w.'-]{0,24} )?)?"
    r"([^\W\d_][\w.'-]{0,24}(?: [\w.'-]{1,24})?)(?: [(\[][^()\[\]\n]{1,30}[)\]])?: "
)
"""Beginning of a message in a conversation of people, or with a label: ``Ann: ``, ``Day 2: ``."""
ADDRESSED = re.compile(
    r"^(?:\[(?:\d{1,2}[:.]\d\d[^\[\]\n]{0,20}|[^\W\d_][\w .'-]{1,30}\]:(?= )|"
    r"\d{4}-[^\[\]\n]{1,24})\]?|"
    r"<@?[\w .'-]{2,24}>|@[\w.-]{2,24}[,:]?) "
)
"""A time, a speaker or an addressee, as chats write them: ``[10:42]``, ``[Ann]:``, ``<ann>``,
``@bot``."""
_ASSISTANT_NAMES = """
    ai agent assistant assistent asistente bot chatbot chatgpt claude copilot gemini gpt model
"""
ASSISTANTS = frozenset(_ASSISTANT_NAMES.split())
"""Names under which an assistant's messages stand in a log: who talks to it sets rules."""
FOR_GOOD = re.compile(
    rf"\bplease (?:\w+ ){{0,2}}(?:always|never|only)\b|\bfrom (?:now|here) on\b|"
    rf"^\W{{0,4}}(?:always|whenever [^,]{{3,100}}, (?:please )?) ?(?:{_VERBS})\b|"
    r"\b(?:all|every|each|any) (?:of )?(?:your |the )?(?:answers?|repl\w+|messages?|reports?)\b"
)
"""What people ask of an assistant and hardly of one another."""

TAKES_BACK = _any(
    r"no longer|again|back to|forget|ignore (?:my|the|that|what)|instead|scrap|cancel|lift(?:ed)?|"
    r"drop (?:the|that)|switch|you (?:may|can|are allowed)|(?:is|are) (?:fine|ok|"
    r"okay|allowed|permitted|free)|"
    r"doesn't matter|don't (?:have|need) to|changed my mind|never ?mind|from now on|"
    r"as of now|now|moved|changed|"
    r"raised|lowered|extended|any ?more",
    r"nicht mehr|wieder|doch|vergiss|stattdessen|jetzt|darfst|egal|à nouveau|oublie|"
    r"maintenant|peux|ya no|"
    r"de nuevo|olvida|ahora|puedes|não precisa|agora|pode|non più|adesso|puoi|"
    r"больше не|теперь|можно|już nie|teraz|"
    r"możesz",
    unspaced="不再|不用再|可以|取消|改成|改为|现在|忘掉|算了|もう|取り消|やめ|変更|かまいません|構いません|いいです|"
    "이제|더 이상|취소|돼요|바꿔",
)
