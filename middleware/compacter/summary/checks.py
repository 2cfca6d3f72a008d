"""Check a model's answer: return the reason why it is not a usable summary, if there is one.

Summaries have many forms, so only clear signs count. Patterns are matched against a bounded
beginning or are themselves bounded; everything else counts words. All of it is linear in the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from unicodedata import name

from compacter.messages.parts import Part
from compacter.summary import prompt
from compacter.text.sentences import sentences
from compacter.text.values import records
from compacter.text.words import UNSPACED, runs, stems, words

_CUT_OFF_WORDS = """
    length max_tokens max_output_tokens model_length model_context_window_exceeded incomplete
"""
_FILTERED_WORDS = """
    content_filter content_filtered safety refusal recitation blocklist prohibited_content spii
    guardrail_intervened
"""
_CUT_OFF = frozenset(_CUT_OFF_WORDS.split())
_FILTERED = frozenset(_FILTERED_WORDS.split())
"""Reasons of providers for the end of an answer."""
# Length of the beginning of an answer that is searched for a refusal or a reply to the user, in
# characters.
_HEAD = 240

# First person, at the beginning: "I'm sorry, but I can't help with that". A report says "the
# assistant refused".
_SORRY = (
    r"(?:(?:i['’]?m|i am)\s(?:very |so |really )?sorry|sorry|(?:my )?apologies|"
    r"i apologi[sz]e|unfortunately|"
    r"regrettably|(?:es )?tut mir (?:sehr )?leid|leider|entschuldigung|"
    r"(?:je suis )?désolée?|malheureusement|lo siento|"
    r"lamento|lamentablemente|desculpe|sinto muito|infelizmente|mi dispiace|"
    r"purtroppo|извините|простите|к сожалению|"
    r"很?抱歉|对不起|對不起|申し訳(?:ありません|ございません)|すみません|죄송(?:합니다|하지만))"
)
_ACT = (
    r"(?:help|assist|comply|complete|fulfil{1,2}|provide|continue|summari[sz]e|"
    r"do (?:that|this|so)|process|answer|"
    r"respond|support|engage|create|produce|generate|discuss|share|write|"
    r"participate|perform|access|offer)"
)
_CANNOT = (
    rf"(?:i (?:really )?(?:can(?:not|['’]?t| not)|could ?n[o']t|won['’]?t|will not|"
    rf"must decline|have to decline|"
    rf"decline|refuse|am (?:not able|unable|not allowed|not permitted)|"
    rf"do not feel comfortable)(?: to)?"
    rf"(?: \w{{1,20}}){{0,2}} {_ACT}|i['’]m (?:not able|unable|not allowed|"
    rf"not permitted) to (?:\w{{1,20}} )?{_ACT}|"
    r"i (?:must|have to) (?:respectfully )?(?:decline|refuse)|"
    r"as an ai(?: language model| assistant)?,? i|"
    r"i['’]m just an ai|this (?:request|content|conversation) (?:violates|goes against)|"
    r"(?:dabei |damit |das )?kann ich (?:\w{1,20} ){0,4}(?:nicht|leider|keine)|"
    r"ich (?:kann|darf|werde) (?:\w{1,20} ){0,4}nicht|je ne (?:peux|suis)(?: malheureusement)? pas|"
    r"je (?:dois|me dois de) refuser|no puedo (?:ayudar|asistir|cumplir|"
    r"proporcionar|resumir|hacer|continuar)|"
    r"no me es posible|não posso (?:ajudar|atender|fornecer|resumir|fazer|"
    r"continuar)|não consigo (?:ajudar|atender)|"
    r"non posso (?:aiutar|assister|fornire|riassumere|continuare|fare|soddisfare)|"
    r"я не (?:могу|буду|в состоянии)|не могу (?:помочь|выполнить|ответить)|"
    r"我(?:无法|不能|没有办法|不可以|無法)|"
    r"無法(?:提供|協助|滿足)|できません|お(?:手伝い|答え|応え)(?:すること)?(?:は|"
    r"が)?できません|할 수 없습니다|"
    r"(?:도와드릴|응답할|제공할|도움을 드릴) 수 없)"
)
_REFUSAL = re.compile(rf"\W{{0,8}}(?:{_SORRY}[^\n]{{0,24}}?)?{_CANNOT}", re.IGNORECASE)
_APOLOGY = re.compile(rf"\W{{0,8}}{_SORRY}", re.IGNORECASE)
_CANNOT_ANYWHERE = re.compile(_CANNOT, re.IGNORECASE)

_SPEAKER = re.compile(
    r"\W{0,3}(?:(?P<user>user|human|benutzer|utilisateur|usuario|пользователь|用户|"
    r"ユーザー)|assistant|ai|system|tool|"
    r"(?:call|result) [\w.-]{1,64}|assistent|asistente|ассистент|助手|アシスタント)\W{0,3}[:：]",
    re.IGNORECASE,
)
_CONTROL = re.compile(
    r"<\|(?:im_start|im_end|eot_id|start_header_id|end_header_id|assistant|user)\|>|"
    r"<(?:start|end)_of_turn>|\[/?INST\]"
)
_FENCE = re.compile(
    (
        r"(?:<|&lt;)[\s/]{0,8}transcript\b|\[[\s/]{1,8}transcript\b|\btranscript(?:>|"
        r"&gt;)|earlier_summary"
    ),
    re.IGNORECASE,
)
_SUMMARY_WORD = re.compile(
    r"summar|recap|overview|so far|conversation|the (?:user|assistant)|zusammenfass|"
    r"bisher|nutzer|résum|resum|"
    r"utilisateur|conversa|usuario|riassun|riepilog|utente|сводк|резюме|краткое|итог|пользовател|"
    r"摘要|总结|總結|概要|用户|用戶|要約|まとめ|ユーザー|요약|사용자",
    re.IGNORECASE,
)
_ANSWERING = re.compile(
    r"\W{0,8}(?:(?:sure|certainly|absolutely|of course|great|no problem|got it|"
    r"understood|thanks?(?: you)?|"
    r"you['’]re welcome|hello|hi|hey|good (?:morning|evening|"
    r"afternoon))(?: ?[!,.—–]| -| there\b|$)|"
    r"i['’]?d be (?:happy|glad) to|i(?:['’]ll| will) (?:now |go |start |begin |"
    r"check |look |take |run |help |get |be )|"
    r"let me (?:check|run|look|see|try|know|start|help|find|take)|"
    r"let['’]s (?:start|begin|look|try|go|continue|see|proceed)|how (?:can|may) i (?:help|assist)|"
    r"what (?:would|can) (?:you|i)|could you (?:please )?(?:provide|clarify|tell|share)|"
    r"please (?:provide|share|let me know|clarify)|"
    r"here (?:you go|is the (?:code|answer|updated|corrected|fixed))|"
    r"(?:gerne|natürlich|klar|hallo|danke|bien sûr|bonjour|merci|d['’]accord|claro|"
    r"hola|gracias|por supuesto|certo|"
    r"ciao|grazie|olá|obrigad[oa]|конечно|привет|здравствуйте|спасибо) ?[!,.]|"
    r"(?:当然|好的|你好|您好|谢谢|はい|もちろん|こんにちは|わかりました|"
    r"承知しました|네|물론|안녕하세요|감사합니다)[!,，、。！])",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    r"(?:let me know (?:if|what|how|when)|feel free to|would you like (?:me )?to|"
    r"do you want me to|shall i|"
    r"how (?:can|may) i (?:help|assist)|is there anything else|soll ich|möchten sie|"
    r"voulez-vous que|souhaitez-vous|"
    r"quieres que|te gustaría|хотите,? чтобы|需要我|您(?:想|希望)|いかがですか|"
    r"しましょうか|할까요)",
    re.IGNORECASE,
)
# Only an answer with fewer characters is taken for a reply because it ends with an offer of help.
_SHORT = 500
# The offer is looked for in so many characters at the end of the last line.
_CLOSING_ROOM = 160

_MAKING = """
    summary summarize summarise overview recap digest condense headings Zusammenfassung
    zusammenfassen zusammenzufassen résumé résumer resumen resumir 总结 概括 摘要 要約 요약
"""
_ASKING = """
    write give make provide create produce keep say state still task goal request asked need want
    user assistant record conversation dialogue chat exchange discussion transcript names numbers
    decisions rules facts words sentences paragraph concise brief order carry work open above below
    Aufgabe schreiben geschrieben erstellen Gespräch Nutzer Assistent Namen Zahlen Entscheidungen
    Wörter écrire rédigez utilisateur tâche tarea escribe conversación usuario asistente nombres
    números 任务 对话 以上 用户 助手 名字 数字 决定 要点 会話 ユーザー アシスタント 대화
"""
_MAKES = stems(_MAKING)
# Words for a summary, and all words typical of a request for one.
_ASKS = stems(_MAKING + _ASKING)
# Runs of words in our own requests.
_REQUEST = frozenset(run for line in prompt.WORDING for run in runs(line))
_PREAMBLE = re.compile(r"(?i)\W{0,8}(?:sure|here|below|this is|hier|voici|aquí|以下)|.*[:：]$")
# Smallest share of request words in an answer that repeats the request.
_MOSTLY = 0.5
# The same where words are pairs of characters.
_ASKING_DENSE = 0.2
# Fewest words, or runs of words, whose shares are judged.
_FEWEST_WORDS = 8
# Of its other words less than a quarter are from the conversation.
_HELD_PART = 4
# Share of the runs of words of an answer and a message, from which on it is that message again.
_SAME = 0.9
# Largest share of runs of words that it has said before.
_REPEATED = 0.4
# Largest share of new runs of words in a copy of the earlier summary.
_NEW = 0.1
# Characters of either text whose script is read.
_SAMPLE = 1_500
# Fewest letters of either text whose script is judged.
_FEWEST_LETTERS = 80
# Share of a script in the conversation from which on it is the script of its people.
_DOMINANT = 0.8
# An answer with a smaller share of it is in another script.
_TRACE = 0.05
_WRAPPED = re.compile(
    r"(?is)\s*(?:<think(?:ing)?>.{0,100000}?</think(?:ing)?>\s*)?(?:```\w{0,12}\n|"
    r"<summary>)?"
)


def clean(text: str) -> str:
    """Return an answer without the additions of local models: thoughts, a code fence, ``<summary>``
    tags.
    """
    start = _WRAPPED.match(text)
    inner = (
        (text[start.end() :] if start else text)
        .strip()
        .removesuffix("```")
        .removesuffix("</summary>")
        .strip()
    )
    return "\n".join(_read_answer(inner)) or inner


def _read_answer(text: str) -> Iterator[str]:
    """Yield the lines of an answer in JSON, each after its key."""
    for record in records(text):
        for key, value in record.items() if isinstance(record, dict) else ():
            name = f"{key.replace('_', ' ')}:" if len(record) > 1 else ""
            if isinstance(value, list):
                yield from (name, *(f"- {item}" for item in value if isinstance(item, str)))
            elif not isinstance(value, dict) and value not in (None, ""):
                yield f"{name} {value}".strip()


def fault(
    text: str,
    *,
    entries: Sequence[Part],
    limit: int,
    finish: str | None = None,
    refused: bool = False,
    called_tool: bool = False,
) -> str:
    """Return the fault of a summary, or an empty string.

    Args:
        text: the answer, after ``clean``.
        entries: the conversation to summarise.
        limit: size in characters of the messages that the summary replaces.
        finish: the provider's finish or stop reason.
        refused: whether the provider reported a refusal.
        called_tool: whether the answer is a tool call.
    """
    finish = (finish or "").lower()
    head = text.strip()[:_HEAD]
    said = words(text)
    if called_tool:
        return "the summarizer called a tool"
    is_sorry = _APOLOGY.match(head) and _CANNOT_ANYWHERE.search(head)
    if refused or is_sorry or finish in _FILTERED or _REFUSAL.match(head):
        return "the summarizer refused"
    if not said:
        return "the summary is empty"
    if finish in _CUT_OFF:
        return "the summary was cut off by its token limit"
    if _FENCE.search(text):
        return "the summary contains a tag of the request"
    if _says_request_again(text, entries):
        return "the answer repeats the request"
    if _continues(text, entries):
        return "the answer continues the conversation instead of summarising it"
    if _in_another_script(text, entries):
        return "the summary is in another script than the conversation"
    if len(text) >= limit:
        return "the summary is not smaller than what it replaces"
    every = runs(text)
    repeats = len(every) - len(set(every)) > _REPEATED * len(every)
    return "the summary repeats itself" if repeats and len(said) >= 3 * _FEWEST_WORDS else ""


def copies(text: str, prior: str, entries: Sequence[Part]) -> bool:
    """Return whether an answer hardly has more than the earlier summary, although the new messages
    are long.
    """
    own = set(runs(text))
    return (
        len(own) >= _FEWEST_WORDS
        and len(own.difference(runs(prior))) <= _NEW * len(own)
        and sum(len(entry.text) for entry in entries) > len(prior) // 4
    )


def _says_request_again(text: str, entries: Sequence[Part]) -> bool:
    """Return whether an answer, or its beginning, has the words of a request for a summary instead
    of a summary.
    """
    own = set(runs(text))
    if len(own) >= _FEWEST_WORDS and len(own & _REQUEST) > _MOSTLY * len(own):
        return True
    begin = next(iter(sentences(text)), "")
    for asked in {text, text if _PREAMBLE.match(begin) else begin}:
        telling = stems(asked)
        share = _ASKING_DENSE if UNSPACED.search(asked) else _MOSTLY
        if telling & _MAKES and len(telling & _ASKS) >= max(2, share * len(telling)):
            others = telling - _ASKS
            held = len(others & stems("\n".join(entry.text for entry in entries)))
            if held * _HELD_PART < max(1, len(others)):
                return True
    return False


def _continues(text: str, entries: Sequence[Part]) -> bool:
    """Return whether an answer has speaker lines, control tokens, a reply to the user, or the last
    message again.
    """
    head = text.lstrip()[:_HEAD]
    about_it = _SUMMARY_WORD.search(head)
    if _CONTROL.search(text) or (not about_it and _ANSWERING.match(head)):
        return True
    lines = [line for line in text.splitlines() if line.strip()]
    speakers = [bool(match["user"]) for match in map(_SPEAKER.match, lines) if match]
    if len(set(speakers)) > 1 and 2 * len(speakers) > len(lines):
        return True
    end = text.rpartition("\n")[2][-_CLOSING_ROOM:]
    if not about_it and len(text) < _SHORT and _CLOSING.search(end):
        return True
    said = [entry for entry in entries if entry.kind != "media"]
    people = [each for each in said if each.kind == "text" and each.role in ("user", "assistant")]
    own = set(runs(text))
    # A summary may resemble the whole conversation.
    for entry in people[-2:] if len(said) > len(people[-2:]) else ():
        theirs = set(runs(entry.text))
        if len(own & theirs) >= _SAME * len(own | theirs):
            return True
    return False


def _in_another_script(text: str, entries: Sequence[Part]) -> bool:
    """Return whether user and assistant mostly write in one script and the summary hardly
    uses it.
    """
    people = ("user", "assistant")
    talk = (each.text[:_SAMPLE] for each in entries if each.role in people and each.kind == "text")
    theirs = _scripts("\n".join(talk))
    ours = _scripts(text)
    if min(theirs.total(), ours.total()) < _FEWEST_LETTERS:
        return False
    script, letters = theirs.most_common(1)[0]
    return letters >= _DOMINANT * theirs.total() and ours[script] < _TRACE * ours.total()


def _scripts(text: str) -> Counter[str]:
    """Return how many letters of each script a text has. A letter's Unicode name begins with it."""
    letters = Counter(filter(str.isalpha, text[:_SAMPLE]))
    scripts = Counter[str]()
    for letter, times in letters.items():
        script = name(letter, " ").split(" ")[0]
        # Japanese writes Chinese characters too: one family.
        scripts["CJK" if script in ("HIRAGANA", "KATAKANA") else script] += times
    return scripts
