"""Standing instructions of the user: rules, limits, preferences, deadlines; in several languages.

Only what the user wrote can be one: text of tools and of the assistant never becomes a rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compacter.history.entry import Entry
from compacter.summaries.units import sentences

STRONG = 2.0
"""Score from which a sentence counts as a standing instruction beyond doubt."""

_LONGEST = 600
_SHORTEST = 6

# Words that make a sentence a rule wherever they stand in it.
_LABEL = re.compile(
    r"^\W*(?:(?:hard|standing|important|strict|global|project|team|house|ground|safety|security|user)\s+)*"
    r"(?:rules?|constraints?|requirements?|instructions?|preferences?|polic(?:y|ies)|reminders?|important|note|budget|deadline|limit|"
    r"regeln?|wichtig|vorgaben?|règles?|important|consignes?|contraintes?|reglas?|importante|restricci[oó]n(?:es)?|requisitos?|"
    r"regras?|restriç(?:ão|ões)|regole?|vincol[oi]|regels?|belangrijk|правил[оа]|важно|ограничени[ея]|zasad[ay]|ważne|kural(?:lar)?|önemli|"
    r"规则|規則|重要|注意|约束|要求|ルール|制約|규칙|중요|قاعدة|مهم|नियम)\b\s*[:：\-–—]",
    re.IGNORECASE,
)
_DIRECTIVE = re.compile(
    r"(?:^|[,;:.\-–—(]\s*|\b(?:and|but|please|also|so|then|remember(?: that| to)?:?|always|again)\s+)"
    r"(?:please\s+)?(?:never|always|do not|don['’]?t|avoid|only (?:use|write|answer|reply|touch|change|commit|speak|work|ever)|make sure|ensure|be sure to|"
    r"must(?: not|n['’]t)?|under no circumstances|at no point|no matter what|from now on|going forward|keep (?:in mind|the|all|every|it|your|costs?|spending)|stick to|"
    r"refrain from|stop (?:using|doing|adding|writing)|remember to|prefer|without (?:my|asking)|ask (?:me|before|first)|check with me|wait for my)\b",
    re.IGNORECASE,
)
_MODAL = re.compile(
    r"\b(?:you|we|it|they|this|that|everything|nothing|nobody|anything|code|answers?|repl(?:y|ies)|responses?|commits?|tests?|changes?|files?|all|each|every|\w+s?)\s+"
    r"(?:must|mustn['’]t|must not|may not|may only|shall|shall not|should never|should always|can(?:not|['’]t) (?:exceed|be changed)|"
    r"(?:is|are) (?:not allowed|forbidden|off[- ]limits|mandatory|required|prohibited)|(?:has|have|needs?) to (?:be|stay|remain|use))\b"
    r"|\b(?:no more than|at most|not exceed|up to a maximum|maximum of|max(?:imum)? budget|budget (?:is|of|cap|limit)|limit(?:ed)? (?:is|to|of)|deadline (?:is|:)|due (?:by|on|date)|no later than|"
    r"i (?:prefer|want you to|need you to|expect you to|insist|forbid|(?:do not|don['’]t) want)|i['’]d (?:prefer|rather)|off[- ]limits|strictly|non[- ]negotiable|mandatory|forbidden|not allowed)\b",
    re.IGNORECASE,
)
_ABSOLUTE = re.compile(
    r"\b(?:never|always|must|do not|don['’]t|only|at all times|under no circumstances|every time|no exceptions?)\b",
    re.IGNORECASE,
)
# The same in other languages: words that forbid, oblige, limit or state a standing preference.
_FOREIGN = re.compile(
    r"\b(?:niemals|nie wieder|immer|auf keinen fall|du (?:musst|darfst|sollst)|bitte (?:nur|nie|immer|keine?n?|nicht)|nur auf|darf(?:st)? (?:nicht|nur)|höchstens|spätestens|ab (?:jetzt|sofort)|"
    r"keinesfalls|unbedingt|verwende (?:nur|nie|immer|keine?)|antworte (?:immer|nur|stets)|stets|budget (?:beträgt|von|ist)|nicht mehr als|frist"
    r"|jamais|toujours|ne (?:\w+ ){1,3}(?:pas|jamais|plus)|n['’]\w+ (?:pas|jamais)|il (?:faut|ne faut pas)|tu (?:dois|ne dois pas)|vous (?:devez|ne devez pas)|au (?:plus|maximum)|au plus tard|en aucun cas|désormais|"
    r"uniquement|interdit|obligatoire|réponds (?:toujours|uniquement)|"
    r"nunca|jamás|siempre|debes|debe|deben|no (?:debes|uses|hagas|toques|borres|envíes|publiques|compartas|modifiques|cambies|superes|ejecutes|escribas)|como máximo|a más tardar|en ningún caso|a partir de ahora|"
    r"prohibido|obligatorio|solo (?:usa|responde|puedes)|responde siempre|sempre|não (?:deve|use|faça|envie|apague|altere|mude|execute|toque)|deve(?:s|m)?|no máximo|até no máximo|em hipótese alguma|a partir de agora|"
    r"proibido|mai|non (?:devi|usare|fare|modificare|toccare|inviare|cancellare|superare|eseguire)|devi|dovete|al massimo|entro e non oltre|d['’]ora in poi|vietato|solo in italiano|"
    r"nooit|altijd|je (?:moet|mag niet)|gebruik (?:nooit|altijd|geen|alleen)|uiterlijk|hoogstens|maximaal|vanaf nu|verboden|"
    r"никогда|всегда|нельзя|обязательно|должен|должна|должны|не (?:используй|делай|трогай|меняй|удаляй|отправляй|превышай|более|позднее|пиши)\w*|не более|не позже|только на|запрещено|с этого момента|ни в коем случае|"
    r"nigdy|zawsze|nie wolno|musisz|najpóźniej|co najwyżej|zabronione|від тепер|ніколи|завжди|"
    r"asla|her zaman|daima|sakın|kesinlikle|en fazla|en geç|"
    r"aldrig|alltid|måste|får inte|inte mer än|senast|ikke|skal altid|må ikke|aldri|aina|älä koskaan|ei koskaan|"
    r"không bao giờ|luôn luôn|luôn|jangan|selalu|harus|tidak boleh|μην|ποτέ|πάντα|πρέπει|vždy|nikdy|nesmíš|musíš|mindig|soha|niciodată|întotdeauna)\b"
    r"|绝不|绝对不|永远不|从不|不要|不得|不能|不许|不准|禁止|切勿|请勿|务必|必须|一定要|总是|始终|只能|只用|只使用|不超过|最多|截止|预算|今后|以后都"
    r"|絕不|絕對不|永遠不|不許|務必|必須|總是|始終|只使用|不超過|預算|勿"
    r"|絶対に|決して|必ず|常に|しないで|してはいけない|てはいけません|ないでください|禁止|以内|までに|てください|今後は|のみ"
    r"|절대|항상|반드시|하지 ?마|마세요|말아|금지|이내|까지|해야|만 사용|앞으로"
    r"|أبدا|أبدًا|دائما|دائمًا|يجب|لا (?:تستخدم|تقم|ترسل|تحذف|تغير|تتجاوز|تكتب|تشارك)|ممنوع|فقط|هرگز|همیشه|לעולם|תמיד|אסור|חייב|אל ת"
    r"|कभी (?:भी )?(?:नहीं|मत|न)|हमेशा|ज़रूर|मत |अनिवार्य|ห้าม|เสมอ|ต้อง|อย่า",
    re.IGNORECASE,
)
_TELLING = re.compile(
    r"^\W*(?:i(?:['’](?:ve|d|m|ll))?|we(?:['’](?:ve|re))?|he|she|they|it|my \w+|his|her|that|there|why|what|how|when|did|do you|have you|would|could|is|are|was)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Instruction:
    """A sentence of the user that is meant to hold from then on."""

    text: str
    score: float
    index: int
    """Position of its entry among those given."""


def find(entries: Iterable[Entry]) -> Iterator[Instruction]:
    """Yield the standing instructions among the user's own texts, word for word, in order."""
    for place, entry in enumerate(entries):
        if entry.role == "user" and entry.kind == "text":
            for sentence in sentences(entry.text):
                value = score(sentence)
                if value >= 1:
                    yield Instruction(sentence, value, place)


def score(sentence: str) -> float:
    """Return how surely ``sentence`` is a standing instruction: 0 not at all, from ``STRONG`` on beyond doubt."""
    if not _SHORTEST <= len(sentence) <= _LONGEST or sentence.rstrip().endswith(("?", "？", "؟")):
        return 0.0
    value = 0.0
    if _LABEL.search(sentence):
        value += 2
    if _DIRECTIVE.search(sentence):
        value += 2
    if _MODAL.search(sentence):
        value += 1.5
    if _FOREIGN.search(sentence):
        value += 2
    if value == 0 and _ABSOLUTE.search(sentence):
        value += 1
    if value and _TELLING.search(sentence):
        value -= 1
    return value
