"""The table of the detector, and its first part: the words that say that a request is too long for a model.

A row has a name, a pattern, and a sample: a message that is misjudged without the row. A test takes each row
out in turn and sees its sample misjudged, so a row that does nothing cannot stay. What meanings amount to together is
told in ``detect`` ("a *context* and *exceeds* in one sentence") and in ``numbers`` (which number is the limit).

Patterns are matched against the plain form that ``text.normalise`` makes: lower case, no accents, single spaces. They
must read hostile text in linear time: bounded repeats only, none inside another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from compacter.overflow.text import fold

Table = Mapping[str, re.Pattern[str]]
"""One compiled pattern for each meaning."""


class Row(NamedTuple):
    """One pattern; its name is unique and starts with its meaning."""

    name: str
    pattern: str
    sample: str

    @property
    def meaning(self) -> str:
        """What it says when the pattern matches."""
        return self.name.partition(":")[0]


def compiled(table: Iterable[Row]) -> dict[str, re.Pattern[str]]:
    """The patterns of each meaning as one."""
    patterns: dict[str, list[str]] = {}
    for row in table:
        patterns.setdefault(row.meaning, []).append(f"(?:{fold(row.pattern)})")
    return {meaning: re.compile("|".join(found)) for meaning, found in patterns.items()}


# fmt: off
LIMITS: Final[tuple[Row, ...]] = (
    # A code that names the fault.
    Row("code: context_length_exceeded", (r"\b(?:(?:max_?)?(?:model_?)?(?:context|prompt|input)_?(?:window|length|size"
        r"|tokens?|limit)_?\w{0,6}_?exceeded|context_?(?:window_?|length_?)?overflow\w{0,10}"
        r"|exceeds?_(?:max_)?context\w{0,20})\b|\b(?:context|prompt|input)_?(?:window|length|size)?_?(?:limit"
        r"|error)\b(?! ?[=:(])"), "request failed: context_length_exceeded"),
    Row("code: prompt_too_long", (r"\b(?:(?:context|prompt|input|history|conversation|messages)_(?:is_)?too_(?:long"
        r"|large)|(?:max_)?tokens?_limit_(?:reached|exceeded)|(?:model_)?max_(?:prompt_|input_"
        r"|context_)?\w{0,12}_exceeded)\b"), "request failed: prompt_too_long"),
    # A class that claims it.
    Row("type: ContextWindowExceededError", (r"context(?:window|length|size|limit)(?:limit|size)?(?:exceed|overflow"
        r"|error)|exceed(?:s|ed|ing)?(?:max|model)?(?:context|token)|contextoverflow|(?:prompt|input|context"
        r"|conversation)toolong|tokenlimit(?:exceed|reach|error)"), "ContextWindowExceededError"),
    # The window of a model.
    Row("context: context window", (r"\b(?:model(?:'?s)? (?:context|window)|context of (?:the|this|its) \w{0,12} ?model"
        r"|(?:loaded|available|supported|configured) context|tokens? (?:context|window))\b|\bcontext (?:is "
        r"|was )?(?:full(?! of)|exhausted|overflow)|context[\s_-]{0,2}(?:window|length|size|len\b|limit|capacity|budget"
        r"|space|maximum)s?|\bkv cache (?=length|size|is full|has insufficient)"),
     "it does not fit the context window"),
    Row("context: max_model_len", (r"\b(?:(?:n_|num_)?ctx(?:[_ -]?(?:len|size))?|total (?:sequence|context) length"
        r"|max_?(?:seq(?:uence)?|model|context|position|total|input|prompt)_?(?:len(?:gth)?|size|embeddings|tokens)?)\b"
        r"|\bmodel_max_\w{3,12}"), "larger than n_ctx"),
    Row("input limit: maximum input length", (r"\b(?:sequence|prompt|input|session) (?:length|max|token) ?(?:limit"
        r"|maximum|max|length)\b|\bmax(?:imum|\.)? (?:\w{3,10} ){0,2}(?:sequence|seq|context|prompt"
        r"|input)s?(?: (?:token )?(?:length|len|size)\b)?|(?:model|llm)'?s? (?:max(?:imum)?|total) (?:sequence "
        r"|token )?(?:length|len\b)|\b(?:prompt|input)s? of (?:at most|up to)\b|\bmax_kv_size\b"),
     "It exceeds the max seq length"),
    Row("context: other languages", (r"(?:上下文|文本)的?(?:最大)?(?:长度|窗口|大小|上限|限制|視窗|長度)|最大上下文"
        r"|上下文(?:已满|溢出|超)|序列长度|コンテキストの?(?:最大)?(?:長|ウィンドウ|サイズ|上限|制限)|最大コンテキスト"
        r"|(?:컨텍스트|문맥) ?(?:최대 )?(?:길이|윈도우|창|크기|한도|제한)|kontext(?:fenster|lange|grosse|limit)"
        r"|maximale[nrs]? (?:kontext|prompt|eingabe)\w{0,12}|contexto permitido|(?:fenetre|longueur|taille|ventana"
        r"|longitud|tamano|janela|comprimento|tamanho|finestra|lunghezza|dimensione|limite) (?:ma[sx]\w{1,4} )?(?:(?:de"
        r"|du|del|do|di) )?conte[xs]t\w{0,2}|\b(?:kontext|conte[xs]t[eo]) (?:(?:ist|est|esta|e) )?(?:voll|plein|llen"
        r"|chei|pien)|контекстн\w{1,4} окн\w{0,3}|(?:окн|длин|размер|лимит)\w{0,3} контекста"
        r"|контекст\w{0,2} (?:модели )?(?:переполн|заполн|исчерпан)"), "上下文长度超限"),
    # What fills the window.
    Row("subject: prompt", (r"\b(?:(?:n_)?(?:input|prompt)_(?:tokens|ids|token_ids)|prompts?|inputs?|context|sequence"
        r"|conversation|chat|history|messages|dialog(?:ue)?|transcript|thread)\b"), "The prompt is too long"),
    Row("subject: other languages", (r"\b(?:nachrichten|unterhaltung|entree|invite|contexte|historique|entrada|contexto"
        r"|mensajes|conversacion|historial|mensagens|conversa|historico|contesto|messaggi|conversazione|cronologia)\b"
        r"|\b(?:eingabe|kontext|verlauf|gesprach|konversation|ввод)|输入|提示词?|上下文|对话|消息|历史|会话|輸入|訊息"
        r"|歷史|對話|入力|プロンプト|コンテキスト|会話|メッセージ|履歴|입력|프롬프트|컨텍스트|대화|메시지|기록|промпт"
        r"|контекст|сообщени[йяе]|входн|диалог|истори"), "对话过长"),
    # What was sent, where nothing better is said.
    Row("request: request", (r"\b(?:request(?:ed|s)?|query|payload|message|texts?|content)\b"),
     "The request is too large for this model"),
    Row("request: other languages", (r"\b(?:anfrage|text|requete|demande|texte|solicitud|peticion|texto|solicitacao"
        r"|requisicao|pedido|richiesta|testo)\b|请求|內容|内容|文本|請求|リクエスト|テキスト|요청|텍스트|запрос|текст"),
     "请求过长，模型无法处理"),
    Row("token: token", r"(?<![a-z_])tok(?:en|s?\b)", "token limit exceeded"),
    Row("token: other languages", r"\bjetons?\b|词元|令牌|トークン|토큰|токен", "令牌超出上限"),
    Row("model: model", (r"\b(?:llm|endpoint|deployment)\b|\bmodel"),
     "The history is more than what the model takes: it exceeds it"),
    Row("model: other languages", r"模型|モデル|모델|модел", "请求过长，模型无法读取"),
    Row("exceed: exceeds", (r"\b(?:exce{1,2}d(?:s|ed|ing)?|surpass\w{0,3}|overshoot\w{0,3}|overflow(?:s|ed|ing)?|excess"
        r"|outgr(?:ow|ew)\w{0,2}|(?:longer|larger|greater|bigger|more|higher) than|greater or equal|(?:is|are|was|goes"
        r"|went|grown|\d|tokens?) (?:over|above|beyond|past)|over the)\b|too small(?: for (?:the|this|your)|: (?:the "
        r"|your )?prompt)\b"), "It surpasses the context window"),
    Row("exceed: other languages", (r"\b(?:(?:langer|grosser|mehr) als|depass\w{0,5}|(?:plus (?:long|grand)\w{0,2}"
        r"|superieur\w{0,2}) (?:que|aux?|a)|exced\w{1,4}|super[ao]\w{0,4}|sobrepas\w{1,4}|(?:mas larg[ao]|mayor) que"
        r"|ultrapass\w{1,4}|(?:maior|mais long[ao]) (?:do )?que|eccede\w{0,3}|oltrepass\w{1,4}|(?:maggiore"
        r"|piu lung[ao]) (?:di|del|della))\b|超过|超出|超限|大于|超過|多于|超え|上回|オーバー|초과|넘었|넘습|넘어|넘는"
        r"|보다 (?:길|깁|큽|크|많)|uberschr(?:eit|itt)\w{0,4}|uberst(?:eig|ieg)\w{0,4}|превы[шс]\w{0,6}|больше,? чем"
        r"|длиннее"), "超出上下文窗口"),
    Row("too long: too long", (r"\b(?:too[ -](?:long|large|big|lengthy)|oversized?|excessively long|longer than that)\b"
        r"|\b(?:is|are) (?:longer|larger)\b(?! than)"), "The chat is too long"),
    Row("too long: other languages", (r"\b(?:longo|longa|grande)s? demais\b|\b(?:zu (?:lang|gross)|trop (?:long|grand"
        r"|volumineu)\w{0,3}|(?:demasiado|muy) (?:larg|grand|extens)\w{0,2}|muito (?:long|grande)\w{0,2}|troppo (?:lung"
        r"|grand)\w{0,2})|过长|太长|过大|超长|太大|過長|太長|長すぎ|大きすぎ|너무 ?(?:길|깁|긴|큽|크)"
        r"|слишком (?:длин|больш|велик)\w{0,4}"), "输入过长"),
    Row("too many: too many tokens", (r"\b(?:too many (?:\w{1,14} ){0,2}tokens?|tokens? count (?:is )?too (?:high"
        r"|large)|too many (?:total )?text bytes)\b"), "The prompt has too many tokens"),
    Row("too many: other languages", (r"\b(?:zu viele tokens?|trop de (?:tokens|jetons)|demasiados tokens|tokens demais"
        r"|muitos tokens|troppi token)\b|(?:tokens?|令牌|词元)(?:数量?)? ?(?:过多|太多)|トークン数?が多すぎ"
        r"|토큰이? 너무 많|слишком много токенов"), "输入的 token 过多"),
    Row("full: full", (r"\b(?:is full|filled up|exhausted|maxed out|(?:limit|window|length) hit|out of (?:room|space"
        r"|context)|(?:no|not enough|insufficient) (?:more )?(?:room|space|capacity)|no longer fits?)\b"
        r"|(?<!be )(?<!not )\breached\b|(?:\bnot|n't|\bcannot|\bunable to|n't|\bdoesnt) (?:\w{1,10} )?(?:fit"
        r"|accommodate)\b"), "The context window is full"),
    Row("full: other languages", (r"\b(?:voll|erreicht|pleine?|ne tient pas|no cabe|llen[ao]|nao cabe|ating\w{1,3}"
        r"|chei[ao]|non entra|pien[ao])\b|\b(?:atteint|alcanz|raggiunt)|已满|已达|用尽|放不下|いっぱい|達し|収まり|가득"
        r"|도달|passt nicht|исчерпан|достигнут|заполнен|не помеща|переполн"), "上下文窗口已满"),
    Row("limit: limit", (r"\b(?:max(?:imum)?|capacity|allow(?:s|ed)|threshold|cap|supported)\b|\blimit"),
     "The tokens exceed what is allowed"),
    Row("limit: other languages", (r"\bgrenze\b|\b(?:maxim(?!um\b)|hochst|erlaubt|massim)|上限|限制|最大|最长|最多|允许"
        r"|制限|以内|한도|제한|최대|허용|лимит|предел|максим|допустим"), "token 超过限制"),
    Row("length: length", r"\b(?:length|size|len|long)\b", "The prompt exceeds the allowed length"),
    # Something must be at most so long.
    Row("bound: must be at most", (r"\b(?:(?:cannot|can't) (?:be (?:more|greater|larger|longer)|have more|exceed)"
        r"|range of)\b|\b(?:must|should|shall|ha(?:s|ve) to|needs? to|can|may)(?: only)? (?:not )?(?:be|have|contain"
        r"|exceed)\b.{0,30}?(?:\d|\b(?:less|fewer|most|more|greater|larger|longer|shorter|smaller|under|below|within"
        r"|between)\b|<)"), "The input must have less than 8192 tokens"),
    Row("bound: only so much", (r"\b(?:(?:expected|accepts|takes|allows|supports|handles?"
        r"|limit(?:ed)?(?: \w{2,8}){0,2} to)(?: only)?(?: (?:prompt|input|message|context)\w{0,2} of)?(?: at most"
        r"| up to)?|(?:can|could|will|may) (?:only|at most) \w{2,10}\b.{0,40}?) \d"),
     "This input: expected at most 8192 tokens"),
    Row("bound: maximum context", r"\bmax(?:imum)? (?:\w{3,10} )?context (?:length|window|size)\b.{0,20} is \d",
     "The maximum context length is 8192 tokens. However, your"),
    Row("bound: east Asian", r"不能超过|不得超过|不可超过|应小于|必须小于|不超过", "输入 token 必须小于 8192"),
    # Advice to shorten it.
    Row("reduce: reduce", (r"\b(?:reduc|shorten|decreas|truncat|trim|shrink|shorter|compact|drop|remov"
        r"|summari[sz])\w{0,4}\b"), "Please reduce the length of the messages."),
    Row("reduce: east Asian", r"减少|缩短|压缩|精简|缩减|減ら|短く|줄여|줄이", "请缩短输入"),
)
# fmt: on
