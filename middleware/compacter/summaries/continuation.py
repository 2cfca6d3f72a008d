"""Whether a text is the next turn of the chat instead of a summary of it.

Summaries come in every shape, so only clear signs count: speaker lines, an answer or greeting addressed to
the user, the last message said again, chat-template control tokens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from compacter.messages.parts import Entry
from compacter.summaries.words import words

_SPEAKER_LINE = re.compile(
    r"^\W{0,3}(user|human|assistant|ai|system|tool|call [\w.-]+|result [\w.-]+|benutzer|assistent|"
    r"utilisateur|usuario|asistente|пользователь|ассистент|用户|助手|ユーザー|アシスタント)\W{0,3}[:：]",
    re.IGNORECASE | re.MULTILINE,
)
_THEIRS = re.compile(r"^\W*(?:user|human|benutzer|utilisateur|usuario|пользователь|用户|ユーザー)", re.IGNORECASE)
_CONTROL = re.compile(
    r"<\|(?:im_start|im_end|eot_id|start_header_id|end_header_id|assistant|user)\|>|<(?:start|"
    r"end)_of_turn>|\[/?INST\]"
)
_SUMMARY_WORD = re.compile(
    r"summar|recap|overview|so far|conversation|the (?:user|assistant)|zusammenfass|bisher|nutzer|résumé|"
    r"resum|récapitul|utilisateur|conversaci|usuario|riassun|riepilog|utente|samenvat|gebruiker|podsumow|"
    r"użytkownik|özet|"
    r"сводк|резюме|краткое|итог|пользовател|摘要|总结|總結|概要|用户|用戶|要約|まとめ|ユーザー|요약|사용자|"
    r"ملخص|المستخدم|सारांश|"
    r"tóm tắt|ringkasan",
    re.IGNORECASE,
)
_ANSWERING = re.compile(
    r"^\W*(?:(?:sure|certainly|absolutely|of course|great|no problem|got it|understood|thanks?(?: you)?|"
    r"you['’]re welcome|hello|hi|hey|hi there|good (?:morning|evening|afternoon))"
    r"(?:\s*[!,.—–]|\s+-|\s+there\b|$)"
    r"|i['’]?d be (?:happy|glad) to|i(?:['’]ll| will) (?:now |go |start |begin |check |look |take |run |"
    r"help |get |be )|let me (?:check|run|look|see|try|know|start|help|find|take)|let['’]s (?:start|begin|"
    r"look|try|go|continue|see|proceed)|"
    r"how (?:can|may) i (?:help|assist)|what (?:would|can) (?:you|i)|could you (?:please )?(?:provide|"
    r"clarify|tell|share)|please (?:provide|share|let me know|clarify)|here (?:you go|is the (?:code|"
    r"answer|updated|corrected|fixed))|"
    r"(?:gerne|natürlich|klar|hallo|danke)\s*[!,.]|(?:bien sûr|bonjour|merci|d['’]accord)\s*[!,.]|(?:claro|"
    r"hola|gracias|por supuesto)\s*[!,.]|(?:certo|ciao|grazie)\s*[!,.]|(?:olá|obrigad[oa])\s*[!,.]|"
    r"(?:конечно|привет|здравствуйте|спасибо)\s*[!,.]|(?:当然|好的|你好|您好|谢谢)\s*[!,，。！]|(?:はい|"
    r"もちろん|こんにちは|わかりました|"
    r"承知しました)\s*[!,、。！]|(?:네|물론|안녕하세요|감사합니다)\s*[!,.])",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    r"(?:let me know (?:if|what|how|when)|feel free to|would you like (?:me )?to|do you want me to|shall i|"
    r"how (?:can|may) i (?:help|assist)|is there anything else|"
    r"soll ich|möchten sie|voulez-vous que|souhaitez-vous|quieres que|te gustaría|хотите,? чтобы|需要我|"
    r"您(?:想|"
    r"希望)|いかがですか|しましょうか|할까요)[^\n]{0,160}$",
    re.IGNORECASE,
)
_HEAD = 200
_SPEAKER_LINES = 3
_SHORT = 500
_ENOUGH_WORDS = 8
_SAME = 0.9


def is_continuation(text: str, entries: Sequence[Entry]) -> bool:
    """Whether ``text`` clearly goes on with the conversation of ``entries`` instead of summarising it."""
    stripped = text.strip()
    if _CONTROL.search(stripped):
        return True
    about_it = bool(_SUMMARY_WORD.search(stripped[:_HEAD]))
    if _is_dialogue(stripped):
        return True
    if not about_it and _ANSWERING.match(stripped):
        return True
    if not about_it and len(stripped) < _SHORT and _CLOSING.search(stripped):
        return True
    return _repeats(stripped, entries)


def _is_dialogue(text: str) -> bool:
    speakers = [match[0] for match in _SPEAKER_LINE.finditer(text)]
    if re.match(r"\W{0,3}assistant\W{0,3}:", text, re.IGNORECASE) and len(speakers) > 1:
        return True
    both = len({bool(_THEIRS.match(speaker)) for speaker in speakers}) == 2
    return (
        both
        and len(speakers) >= _SPEAKER_LINES
        and len(speakers) * 2 > len([line for line in text.splitlines() if line.strip()])
    )


def _repeats(text: str, entries: Sequence[Entry]) -> bool:
    """Whether the text says one of the newest messages again and nothing else."""
    newest = [entry for entry in entries if entry.kind == "text" and entry.role in ("user", "assistant")][-2:]
    if len(newest) == len([entry for entry in entries if entry.kind != "media"]):
        return False  # All there was: its summary may well read like it.
    own = _runs(text)
    for entry in newest:
        theirs = _runs(entry.text)
        if entry.text.strip() == text:
            return True
        if len(own) >= _ENOUGH_WORDS and len(own & theirs) >= _SAME * len(own | theirs):
            return True
    return False


def _runs(text: str) -> set[tuple[str, ...]]:
    """Runs of three words: two texts that share their vocabulary need not say the same."""
    said = list(words(text))
    return set(zip(said, said[1:], said[2:], strict=False))
