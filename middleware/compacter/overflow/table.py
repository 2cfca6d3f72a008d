"""The table of the detector, and its first part: the words that say that a request is too long for a model.

A row has a meaning, a name, a pattern, and a sample: a message that is misjudged without the row. A test takes each row
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
    """One pattern; its name is unique."""

    meaning: str
    name: str
    pattern: str
    sample: str


def rows(meaning: str, *entries: tuple[str, str, str]) -> tuple[Row, ...]:
    """Rows of one meaning, from (name, pattern, sample)."""
    return tuple(Row(meaning, f"{meaning}: {name}", pattern, sample) for name, pattern, sample in entries)


def compiled(table: Iterable[Row]) -> dict[str, re.Pattern[str]]:
    """The patterns of each meaning as one."""
    patterns: dict[str, list[str]] = {}
    for row in table:
        patterns.setdefault(row.meaning, []).append(f"(?:{fold(row.pattern)})")
    return {meaning: re.compile("|".join(found)) for meaning, found in patterns.items()}


# fmt: off
LIMITS: Final[tuple[Row, ...]] = (
    # A code that names the fault.
    *rows("code",
        ("context_length_exceeded", (r"\b(?:max_?)?(?:model_?)?(?:context|prompt|input)_?(?:window|length|size"
            r"|tokens?|limit)_?\w{0,6}_?exceeded\b|\bcontext_?(?:window_?|length_?)?overflow\w{0,10}\b"
            r"|\bexceeds?_(?:max_)?context\w{0,20}\b|\b(?:context|prompt|input)_?(?:window|length|size)?_?(?:limit"
            r"|error)\b(?! ?[=:(])"), "request failed: context_length_exceeded"),
        ("prompt_too_long", (r"\b(?:context|prompt|input|history|conversation|messages)_(?:is_)?too_(?:long"
            r"|large)\b"), "request failed: prompt_too_long"),
        ("tokens_limit_reached", (r"\b(?:max_)?tokens?_limit_(?:reached|exceeded)\b|\b(?:model_)?max_(?:prompt_"
            r"|input_|context_)?\w{0,12}_exceeded\b"), "code: tokens_limit_reached"),
    ),
    # A class that claims it.
    *rows("type",
        ("ContextWindowExceededError", (r"context(?:window|length|size|limit)(?:limit|size)?(?:exceed|overflow"
            r"|error)|exceed(?:s|ed|ing)?(?:max|model)?(?:context|token)|contextoverflow"
            r"|(?:prompt|input|context|conversation)toolong|tokenlimit(?:exceed|reach|error)"),
         "ContextWindowExceededError"),
    ),
    # The window of a model.
    *rows("context",
        ("context window", (r"context[\s_-]{0,2}(?:window|length|size|len\b|limit|capacity|budget|space|maximum)s?"
            r"|\bmodel(?:'?s)? (?:context|window)\b|\bcontext of (?:the|this|its) \w{0,12} ?model\b"
            r"|\b(?:loaded|available|supported|configured) context\b|\btokens? (?:context|window)\b"),
         "it does not fit the context window"),
        ("max_model_len", (r"\b(?:n_ctx|num_ctx|ctx[_ -]?(?:len|size))\b|\bmodel_max_\w{3,12}"
            r"|\btotal (?:sequence|context) length\b|\bmax_?(?:seq(?:uence)?|model|context|position|total|input"
            r"|prompt)_?(?:len(?:gth)?|size|embeddings|tokens)?\b"), "larger than n_ctx"),
        ("maximum input length", (r"\bmax(?:imum|\.)? (?:\w{3,10} ){0,2}(?:sequence|seq|context|prompt"
            r"|input)s?(?: (?:token )?(?:length|len|size)\b)?|\b(?:sequence|prompt|input|session) (?:length|max"
            r"|token) ?(?:limit|maximum|max|length)\b|(?:model|llm)'?s? (?:max(?:imum)?|total) (?:sequence "
            r"|token )?(?:length|len\b)"), "It exceeds the max seq length"),
        ("east Asian", (r"(?:上下文|文本)的?(?:最大)?(?:长度|窗口|大小|上限|限制|視窗|長度)|最大上下文|序列长度"
            r"|コンテキストの?(?:最大)?(?:長|ウィンドウ|サイズ|上限|制限)|最大コンテキスト"
            r"|(?:컨텍스트|문맥) ?(?:최대 )?(?:길이|윈도우|창|크기|한도|제한)"), "上下文长度超限"),
        ("European", (r"kontext(?:fenster|lange|grosse|limit)|maximale[nrs]? (?:kontext|prompt|eingabe)\w{0,12}"
            r"|fenetre (?:de |du )?context\w{0,2}|(?:longueur|taille|limite) (?:max\w{0,5} )?(?:de "
            r"|du )?context\w{0,2}|ventana de contexto|(?:longitud|tamano|limite) (?:maxim[ao] )?(?:de|del) contexto"
            r"|contexto permitido|janela de contexto|(?:comprimento|tamanho|limite) (?:maxim[ao] )?(?:de"
            r"|do) contexto|finestra (?:di|del) contesto|(?:lunghezza|dimensione|limite) (?:massim[ao] )?(?:di"
            r"|del) contesto|контекстн\w{1,4} окн\w{0,3}|окн\w{0,3} контекста|(?:длин\w{1,2}|размер\w{0,2}"
            r"|лимит\w{0,2}) контекста"), "Kontextfenster überschritten"),
    ),
    # What fills the window.
    *rows("subject",
        ("prompt", (r"\b(?:n_)?(?:input|prompt)_tokens\b|\bprompts?\b|\binputs?\b|\bcontext\b|\bsequence\b"
            r"|\bconversation\b|\bchat\b|\bhistory\b|\bmessages\b|\bdialog(?:ue)?\b|\btranscript\b|\bthread\b"),
         "The prompt is too long"),
        ("east Asian", (r"输入|提示词?|上下文|对话|消息|历史|会话|輸入|訊息|歷史|對話|入力|プロンプト|コンテキスト"
            r"|会話|メッセージ|履歴|입력|프롬프트|컨텍스트|대화|메시지|기록"), "对话过长"),
        ("European", (r"\beingabe|\bnachrichten\b|\bkontext|\bunterhaltung\b|\bverlauf|\bgesprach|\bkonversation"
            r"|\bentree\b|\binvite\b|\bcontexte\b|\bhistorique\b|\bentrada\b|\bcontexto\b|\bmensajes\b"
            r"|\bconversacion\b|\bhistorial\b|\bmensagens\b|\bconversa\b|\bhistorico\b|\bcontesto\b|\bmessaggi\b"
            r"|\bconversazione\b|\bcronologia\b|промпт|контекст|сообщени[йяе]|\bввод|входн|диалог|истори"),
         "Die Unterhaltung ist zu lang"),
    ),
    # What was sent, where nothing better is said.
    *rows("request",
        ("request", (r"\brequest(?:ed|s)?\b|\bquery\b|\bpayload\b|\bmessage\b|\btexts?\b|\bcontent\b"),
         "The request is too large for this model"),
        ("east Asian", r"请求|內容|内容|文本|請求|リクエスト|テキスト|요청|텍스트", "请求过长，模型无法处理"),
        ("European", (r"\banfrage\b|\btext\b|\brequete\b|\bdemande\b|\btexte\b|\bsolicitud\b|\bpeticion\b|\btexto\b"
            r"|\bsolicitacao\b|\brequisicao\b|\bpedido\b|\brichiesta\b|\btesto\b|запрос|текст"),
         "Die Anfrage ist zu lang für das Modell"),
    ),
    # Tokens.
    *rows("token",
        ("token", r"(?<![a-z_])tok(?:en|s?\b)", "token limit exceeded"),
        ("east Asian", r"词元|令牌|トークン|토큰", "令牌超出上限"),
        ("European", r"\bjetons?\b|токен", "La limite de jetons est dépassée"),
    ),
    # The model.
    *rows("model",
        ("model", (r"\bmodel|\bllm\b|\bendpoint\b|\bdeployment\b"),
         "The history is more than what the model takes: it exceeds it"),
        ("east Asian", r"模型|モデル|모델", "请求过长，模型无法读取"),
        ("European", r"модел", "Запрос слишком велик для модели"),
    ),
    # One thing goes over another.
    *rows("exceed",
        ("exceeds", (r"\bexce{1,2}d(?:s|ed|ing)?\b|\bsurpass\w{0,3}\b|\bovershoot\w{0,3}\b"
            r"|\boverflow(?:s|ed|ing)?\b|\bexcess\b|\boutgr(?:ow|ew)\w{0,2}\b|\b(?:longer|larger|greater|bigger|more"
            r"|higher) than\b|\bgreater or equal\b|\b(?:is|are|was|goes|went|grown|\d|tokens?) (?:over|above|beyond"
            r"|past)\b|\bover the\b"), "It surpasses the context window"),
        ("east Asian", (r"超过|超出|超限|大于|超過|多于|超え|上回|オーバー|超過|초과|넘었|넘습|넘어|넘는"
            r"|보다 (?:길|깁|큽|크|많)"), "超出上下文窗口"),
        ("European", (r"uberschr(?:eit|itt)\w{0,4}|uberst(?:eig|ieg)\w{0,4}|\b(?:langer|grosser|mehr) als\b"
            r"|\bdepass\w{0,5}\b|\b(?:plus (?:long|grand)\w{0,2}|superieur\w{0,2}) (?:que|a)\b|\bexced\w{1,4}\b"
            r"|\bsuper[ao]\w{0,4}\b|\bsobrepas\w{1,4}\b|\b(?:mas larg[ao]|mayor) que\b|\bultrapass\w{1,4}\b"
            r"|\b(?:maior|mais long[ao]) (?:do )?que\b|\beccede\w{0,3}\b|\boltrepass\w{1,4}\b"
            r"|\b(?:maggiore|piu lung[ao]) (?:di|del|della)\b|превы[шс]\w{0,6}|больше,? чем|длиннее"),
         "Das Kontextfenster wurde überschritten"),
    ),
    # Something is too long.
    *rows("too long",
        ("too long", (r"\btoo (?:long|large|big|lengthy)\b|\boversized?\b|\bexcessively long\b|\blonger than that\b"
            r"|\b(?:is|are) (?:longer|larger)\b(?! than)"), "The chat is too long"),
        ("east Asian", r"过长|太长|过大|超长|太大|過長|太長|長すぎ|大きすぎ|너무 ?(?:길|깁|긴|큽|크)", "输入过长"),
        ("European", (r"\bzu (?:lang|gross)|\btrop (?:long|grand|volumineu)\w{0,3}"
            r"|\b(?:demasiado|muy) (?:larg|grand|extens)\w{0,2}|\bmuito (?:long|grande)\w{0,2}"
            r"|\b(?:longo|longa|grande)s? demais\b|\btroppo (?:lung|grand)\w{0,2}"
            r"|слишком (?:длин|больш|велик)\w{0,4}"), "Der Prompt ist zu lang"),
    ),
    # There are too many tokens.
    *rows("too many",
        ("too many tokens", (r"\btoo many (?:\w{1,14} ){0,2}tokens?\b|\btokens? count (?:is )?too (?:high|large)\b"
            r"|\btoo many (?:total )?text bytes\b"), "The prompt has too many tokens"),
        ("east Asian", (r"(?:tokens?|令牌|词元)(?:数量?)? ?(?:过多|太多)|トークン数?が多すぎ|토큰이? 너무 많"),
         "输入的 token 过多"),
        ("European", (r"\bzu viele tokens?\b|\btrop de (?:tokens|jetons)\b|\bdemasiados tokens\b|\btokens demais\b"
            r"|\bmuitos tokens\b|\btroppi token\b|слишком много токенов"), "Zu viele Tokens im Prompt"),
    ),
    # No room is left.
    *rows("full",
        ("full", (r"\bis full\b|\bfilled up\b|\bexhausted\b|\bmaxed out\b|\b(?:limit|window|length) hit\b"
            r"|\bout of (?:room|space|context)\b|\b(?:no|not enough|insufficient) (?:more )?(?:room|space)\b"
            r"|(?<!be )(?<!not )\breached\b|\bno longer fits?\b|(?:\bnot|n't|\bcannot|\bunable to|n't"
            r"|\bdoesnt) (?:\w{1,10} )?(?:fit|accommodate)\b"), "The context window is full"),
        ("east Asian", r"已满|已达|用尽|放不下|いっぱい|達し|収まり|가득|도달", "上下文窗口已满"),
        ("European", (r"passt nicht|\bvoll\b|\berreicht\b|\batteint|\bpleine?\b|\bne tient pas\b|\bno cabe\b"
            r"|\balcanz|\bllen[ao]\b|\bnao cabe\b|\bating\w{1,3}\b|\bchei[ao]\b|\braggiunt|\bnon entra\b"
            r"|\bpien[ao]\b|исчерпан|достигнут|заполнен|не помеща|переполн"), "Das Kontextfenster ist voll"),
    ),
    # A limit.
    *rows("limit",
        ("limit", (r"\blimit|\bmax(?:imum)?\b|\bcapacity\b|\ballow(?:s|ed)\b|\bthreshold\b|\bcap\b|\bsupported\b"),
         "The tokens exceed what is allowed"),
        ("east Asian", r"上限|限制|最大|最长|最多|允许|上限|最大|制限|한도|제한|최대|허용", "token 超过限制"),
        ("European", (r"\bgrenze\b|\bmaxim|\bhochst|\berlaubt|\bmassim|лимит|предел|максим|допустим"),
         "Tokens überschreiten die Grenze"),
    ),
    # A length.
    *rows("length",
        ("length", r"\b(?:length|size|len|long)\b", "The prompt exceeds the allowed length"),
    ),
    # Something must be at most so long.
    *rows("bound",
        ("must be at most", (r"\b(?:must|should|shall|ha(?:s|ve) to|needs? to|can|may)(?: only)? (?:not )?(?:be"
            r"|have|contain|exceed)\b.{0,30}?(?:\d|\b(?:less|fewer|most|more|greater|larger|longer|shorter|smaller"
            r"|under|below|within|between)\b|<)|\b(?:cannot|can't) (?:be (?:more|greater|larger|longer)|have more"
            r"|exceed)\b|\brange of\b"), "The input must have less than 8192 tokens"),
        ("only so much", (r"\b(?:expected|accepts|takes|allows|supports|handles?|limited to)(?: only)?(?: at most"
            r"| up to)? \d|\b(?:can|could|will) (?:only|at most) (?:\w{2,10} )(?:up to )?\d"),
         "This input: expected at most 8192 tokens"),
        ("east Asian", r"不能超过|不得超过|不可超过|应小于|必须小于|不超过", "输入 token 必须小于 8192"),
    ),
    # Advice to shorten it.
    *rows("reduce",
        ("reduce", (r"\b(?:reduc|shorten|decreas|truncat|trim|shrink|shorter|compact|drop|remov"
            r"|summari[sz])\w{0,4}\b"), "Please reduce the length of the messages."),
        ("east Asian", r"减少|缩短|精简|缩减|減ら|短く|줄여|줄이", "请缩短输入"),
    ),
)
# fmt: on
