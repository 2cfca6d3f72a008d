"""Whether a text is a refusal, in several languages, and not merely a report about one."""

from __future__ import annotations

import re

_HEAD = 240

# First person, at the beginning: "I'm sorry, but I can't help with that". A report says "the assistant
# refused".
_SORRY = (
    r"(?:(?:i['’]?m|i am)\s+(?:very\s+|so\s+|really\s+)?sorry|sorry|apologies|my apologies|i apologi[sz]e|"
    r"unfortunately|regrettably|"
    r"es tut mir (?:sehr )?leid|tut mir leid|leider|entschuldigung|(?:je suis |je me vois )?désolée?|"
    r"malheureusement|lo siento|lamento|disculpa|lamentablemente|"
    r"desculpe|sinto muito|lamento|infelizmente|mi dispiace|purtroppo|het spijt me|sorry|helaas|przykro mi|"
    r"przepraszam|niestety|üzgünüm|maalesef|"
    r"извините|простите|к сожалению|прошу прощения|抱歉|对不起|很抱歉|對不起|申し訳(?:ありません|"
    r"ございません)|すみません|죄송(?:합니다|하지만)|"
    r"آسف|عذرا|عذرًا|क्षमा करें|माफ़ करें|xin lỗi|maaf)"
)
_ACT = (
    r"(?:help|assist|comply|compl(?:y|ete)|fulfil{1,2}|provide|continue|summari[sz]e|do (?:that|this|"
    r"so)|process|answer|respond|support|engage|create|produce|generate|discuss|share|write|"
    r"participate|perform|access|offer)"
)
_CANNOT = (
    rf"(?:i\s+(?:really\s+)?(?:can(?:not|['’]?t| not)|could ?n[o']t|won['’]?t|will not|must decline|"
    rf"have to decline|decline|refuse|(?:am|['’]m) (?:not able|unable|not allowed|not permitted)|"
    rf"do not feel comfortable)(?:\s+to)?(?:\s+\w+){{0,2}}\s+{_ACT}"
    rf"|i['’]m (?:not able|unable|not allowed|not permitted) to (?:\w+ )?{_ACT}|i (?:must|"
    rf"have to) (?:respectfully )?(?:decline|refuse)|as an ai(?: language model| assistant)?,? i|"
    rf"i['’]m just an ai|this (?:request|content|conversation) (?:violates|goes against)"
    r"|(?:dabei |damit |das )?kann ich (?:\w+ ){0,4}(?:nicht|leider|keine)|ich (?:kann|darf|"
    r"werde) (?:\w+ ){0,4}nicht|je ne (?:peux|suis)(?: malheureusement)? pas|je (?:dois|"
    r"me dois de) refuser|no puedo (?:ayudar|asistir|cumplir|proporcionar|resumir|hacer|continuar|"
    r"responder)|no me es posible|"
    r"não posso (?:ajudar|atender|fornecer|resumir|fazer|continuar)|não consigo (?:ajudar|atender)|"
    r"non posso (?:aiutar|assister|fornire|riassumere|continuare|fare|soddisfare)|ik kan (?:\w+ ){0,3}niet|"
    r"nie mogę|yardımcı olamam|"
    r"я не (?:могу|буду|в состоянии)|не могу (?:помочь|выполнить|ответить)|我(?:无法|不能|没有办法|不可以)|"
    r"無法(?:提供|協助|"
    r"滿足)|我無法|できません|お(?:手伝い|答え|応え)(?:すること)?(?:は|が)?できません|할 수 없습니다|"
    r"도와드릴 수 없|도울 수 없|لا (?:أستطيع|يمكنني)|"
    r"मैं .{0,30}नहीं कर सकता|tôi không thể|saya tidak (?:bisa|dapat))"
)
_PLAIN = re.compile(
    rf"^\W*(?:{_SORRY}[\s,.!:;，。、！—–-]*(?:but|aber|mais|pero|mas|ma|maar|но|但|けど|하지만|"
    rf"ولكن)?[\s,.，。]*)?{_CANNOT}",
    re.IGNORECASE,
)
_SORRY_FIRST = re.compile(rf"^\W*{_SORRY}(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_CANNOT_ANYWHERE = re.compile(_CANNOT, re.IGNORECASE)


def is_refusal(text: str) -> bool:
    """Whether ``text`` begins as a refusal in the first person."""
    head = text.strip()[:_HEAD]
    if _PLAIN.match(head):
        return True
    apology = _SORRY_FIRST.match(head)
    return bool(apology and _CANNOT_ANYWHERE.search(apology["rest"]))
