"""Check a model's answer: return the reason why it is not a usable summary, if there is one.

Summaries have many forms, so only clear signs count. Patterns are matched against a bounded
beginning or are themselves bounded; everything else counts words. All of it is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compacter.messages.replies import Reply
from compacter.text.values import records
from compacter.text.words import words

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
# Our own tags, and the control tokens of chat templates.
_FENCE = re.compile(
    r"(?i)(?:<|&lt;)[\s/]{0,8}transcript\b|\[[\s/]{1,8}transcript\b|\btranscript(?:>|&gt;)|"
    r"earlier_summary|<\|(?:im_start|im_end|eot_id|start_header_id|end_header_id|assistant|user)\|>|"
    r"<(?:start|end)_of_turn>|\[/?INST\]"
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
# Fewest words of an answer that may repeat itself.
_FEWEST_WORDS = 24
# Largest share of runs of words that it has said before.
_REPEATED = 0.4
_WRAPPED = re.compile(
    r"(?is)\A\s*(?:<think(?:ing)?>.{0,100000}?</think(?:ing)?>\s*)?(?:```\w{0,12}\n|"
    r"<summary>)?"
)


def clean(text: str) -> str:
    """Return an answer without the additions of local models: thoughts, a code fence, ``<summary>``
    tags.
    """
    inner = _WRAPPED.sub("", text, count=1).strip()
    inner = inner.removesuffix("```").removesuffix("</summary>").strip()
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


def fault(reply: Reply, limit: int) -> str:
    """Return the fault of a summary, or an empty string.

    Args:
        reply: the answer, with its text after ``clean``.
        limit: size in characters of the messages that the summary replaces.
    """
    text = reply.text
    finish = (reply.finish or "").lower()
    head = text.strip()[:_HEAD]
    said = words(text)
    if reply.called_tool:
        return "the summarizer called a tool"
    is_sorry = _APOLOGY.match(head) and _CANNOT_ANYWHERE.search(head)
    if reply.refused or is_sorry or finish in _FILTERED or _REFUSAL.match(head):
        return "the summarizer refused"
    if not said:
        return "the summary is empty"
    if finish in _CUT_OFF:
        return "the summary was cut off by its token limit"
    if _FENCE.search(text):
        return "the summary contains a tag of the request"
    if _continues(text):
        return "the answer continues the conversation instead of summarising it"
    if len(text) >= limit:
        return "the summary is not smaller than what it replaces"
    runs = list(zip(said, said[1:], said[2:], strict=False))
    repeats = len(runs) - len(set(runs)) > _REPEATED * len(runs)
    return "the summary repeats itself" if repeats and len(said) >= _FEWEST_WORDS else ""


def _continues(text: str) -> bool:
    """Return whether an answer has speaker lines or a reply to the user."""
    head = text.lstrip()[:_HEAD]
    if not _SUMMARY_WORD.search(head) and _ANSWERING.match(head):
        return True
    lines = [line for line in text.splitlines() if line.strip()]
    speakers = [bool(match["user"]) for match in map(_SPEAKER.match, lines) if match]
    return len(set(speakers)) > 1 and 2 * len(speakers) > len(lines)
