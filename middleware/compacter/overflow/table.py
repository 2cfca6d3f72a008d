"""The table of the detector: patterns of errors about a request that is too long, and of similar errors.

A row has a name, a pattern, and a sample: a message that is misjudged without the row. A test takes out each row in
turn and checks that its sample is misjudged, so every row is needed. The rules that combine meanings are in ``detect``
("a *context* and *exceeds* in one sentence"); the words that give numbers their role are in ``numbers``.

Patterns are matched against normalised text (``text.normalise``): lower case, no accents, single spaces. They must
match hostile text in linear time: only bounded repeats, not nested.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from compacter.overflow.signals import fold

Table = Mapping[str, re.Pattern[str]]
"""Compiled pattern of each meaning."""


class Row(NamedTuple):
    """One pattern; its name is unique and starts with its meaning."""

    name: str
    pattern: str
    sample: str

    @property
    def meaning(self) -> str:
        """Meaning of a match: the part of the name before the colon."""
        return self.name.partition(":")[0]


def compiled(table: Iterable[Row]) -> dict[str, re.Pattern[str]]:
    """Return one compiled pattern for each meaning."""
    patterns: dict[str, list[str]] = {}
    for row in table:
        patterns.setdefault(row.meaning, []).append(f"(?:{fold(row.pattern)})")
    return {meaning: re.compile("|".join(found)) for meaning, found in patterns.items()}


# fmt: off
LIMITS: Final[tuple[Row, ...]] = (
    # An error code.
    Row("code: context_length_exceeded", (r"\b(?:(?:max_?)?(?:model_?)?(?:context|prompt|input)_?(?:window|length|size"
        r"|tokens?|limit)_?\w{0,6}_?exceeded|context_?(?:window_?|length_?)?overflow\w{0,10}"
        r"|exceeds?_(?:max_)?context\w{0,20})\b|\b(?:context|prompt|input)_?(?:window|length|size)?_?(?:limit"
        r"|error)\b(?! ?[=:(])"), "request failed: context_length_exceeded"),
    Row("code: prompt_too_long", (r"\b(?:(?:context|prompt|input|history|conversation|messages)_(?:is_)?too_(?:long"
        r"|large)|(?:max_)?tokens?_limit_(?:reached|exceeded)|status_msg\W{1,5}token limit|(?:model_)?max_(?:prompt_"
        r"|input_|context_)?\w{0,12}_exceeded)\b"), "request failed: prompt_too_long"),
    # A class name.
    Row("type: ContextWindowExceededError", (r"context(?:window|length|size|limit)(?:limit|size)?(?:exceed|overflow"
        r"|error)|exceed(?:s|ed|ing)?(?:max|model)?(?:context|token)|contextoverflow|(?:prompt|input|context"
        r"|conversation)toolong|tokenlimit(?:exceed|reach|error)"), "ContextWindowExceededError"),
    # The context window of a model.
    Row("context: context window", (r"\b(?:model(?:'?s)? (?:context|window)|context of (?:the|this|its) \w{0,12} ?model"
        r"|(?:loaded|available|supported|configured) context|tokens? (?:context|window)|(?:exceeds?|than) (?:the "
        r"|its )?context)\b|\bcontext (?:is |was )?(?:full(?! of)|exhausted|overflow)|context[\s_-]{0,2}(?:window"
        r"|length|size|len\b|limit|capacity|budget|space|maximum)s?"
        r"|\bkv cache (?=length|size|is full|has insufficient)"),
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
        r"|контекст\w{0,2} (?:модели )?(?:переполн|заполн|исчерпан)"), "文本长度超限"),
    # The input of the model.
    Row("subject: prompt", (r"\b(?:(?:n_)?(?:input|prompt)_(?:tokens|ids|token_ids)|prompts?|inputs?|context|sequence"
        r"|conversation|chat|history|messages|dialog(?:ue)?|transcript|thread)\b"), "The prompt is too long"),
    Row("subject: other languages", (r"\b(?:nachrichten|unterhaltung|entree|invite|contexte|historique|entrada|contexto"
        r"|mensajes|conversacion|historial|mensagens|conversa|historico|contesto|messaggi|conversazione|cronologia)\b"
        r"|\b(?:eingabe|kontext|verlauf|gesprach|konversation|ввод)|输入|提示词?|上下文|对话|消息|历史|会话|輸入|訊息"
        r"|歷史|對話|入力|プロンプト|コンテキスト|会話|メッセージ|履歴|입력|프롬프트|컨텍스트|대화|메시지|기록|промпт"
        r"|контекст|сообщени[йяе]|входн|диалог|истори"), "对话过长"),
    # The request, in texts without a better word for the messages.
    Row("request: request", (r"\b(?:request(?:ed|s)?|query|payload|message|texts?|content)\b(?!['\"] ?:)"),
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
        r"|보다 (?:길|깁|큽|크|많)|uberschr(?:eit|itt)\w{0,4}|uberst(?:eig|ieg)\w{0,4}|sprengt|превы[шс]\w{0,6}"
        r"|больше,? чем|длиннее"), "超出上下文窗口"),
    Row("too long: too long", (r"\b(?:too[ -](?:long|large|big|lengthy)|oversized?|excessively long|longer than that"
        r"|cannot truncate)\b|\b(?:is|are) (?:longer|larger)\b(?! than)"), "The chat is too long"),
    Row("too long: other languages", (r"\b(?:longo|longa|grande)s? demais\b|\b(?:zu (?:lang|gross)|trop (?:long|grand"
        r"|volumineu)\w{0,3}|(?:demasiado|muy) (?:larg|grand|extens)\w{0,2}|muito (?:long|grande)\w{0,2}|troppo (?:lung"
        r"|grand)\w{0,2})|过长|太长|过大|超长|太大|過長|太長|長すぎ|大きすぎ|너무 ?(?:길|깁|긴|큽|크)"
        r"|слишком (?:длин|больш|велик)\w{0,4}"), "输入过长"),
    Row("too many: too many tokens", (r"\b(?:too many (?:\w{1,14} ){0,2}tokens?|tokens? (?:count|total) (?:is )?too"
        r" (?:high|large)|too many (?:total )?text bytes)\b"),
     "The prompt has too many tokens"),
    Row("too many: other languages", (r"\b(?:zu viele tokens?|trop de (?:tokens|jetons)|demasiados tokens|tokens demais"
        r"|muitos tokens|troppi token)\b|(?:tokens?|令牌|词元)(?:数量?)? ?(?:过多|太多)|トークン数?が多すぎ"
        r"|토큰이? 너무 많|слишком много токенов"), "输入的 token 过多"),
    Row("full: full", (r"\b(?:is full|filled up|exhausted|maxed out|(?:limit|window|length) (?:hit|full)|out of (?:room"
        r"|space|context)|(?:no|not enough|insufficient) (?:more )?(?:room|space|capacity|tokens available for)"
        r"|no longer fits?)\b|(?<!be )(?<!not )\breached\b|(?:\bnot|n't|\bcannot|\bunable to"
        r"|\bdoesnt) (?:\w{1,10} ){0,3}(?:fit|accommodate)\b"), "The context window is full"),
    Row("full: other languages", (r"\b(?:voll|erreicht|pleine?|ne tient pas|no cabe|llen[ao]|nao cabe|ating\w{1,3}"
        r"|chei[ao]|non entra|pien[ao])\b|\b(?:atteint|alcanz|raggiunt)|已满|已达|用尽|放不下|いっぱい|達し|収まり|가득"
        r"|도달|passt nicht|исчерпан|достигнут|заполнен|не помеща|переполн"), "上下文窗口已满"),
    Row("limit: limit", (r"\b(?:max(?:imum)?|capacity|allow(?:s|ed)|threshold|cap|supported)\b|\blimit"),
     "The tokens exceed what is allowed"),
    Row("limit: other languages", (r"\bgrenze\b|\b(?:maxim(?!um\b)|hochst|erlaubt|massim)|上限|限制|最大|最长|最多|允许"
        r"|制限|以内|한도|제한|최대|허용|лимит|предел|максим|допустим"), "token 超过限制"),
    Row("length: length", r"\b(?:length|size|len|long)\b|长度|길이", "The prompt exceeds the allowed length"),
    # A length must not be exceeded.
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

# Meanings that look like a token limit but are not.
VETOES: Final[tuple[Row, ...]] = (
    # Tokens requested for the completion.
    Row("output: max_tokens", (r"\b(?:max(?:imum)?[_-]?tokens?(?:_to_sample)?|max[_ ]?(?:new|completion|output"
        r"|generated)[_ ]?tokens?|n(?:um)?_predict|budget_tokens|thinking[_. ]budget)\b"
        r"|\bmax(?:imum)? tokens? (?:that )?(?:you |were |was )?(?:requested|value|param|setting|must|should)"),
     "max_tokens exceeds the token limit"),
    Row("output: output tokens", (r"\b(?:(?:output|completion|generat(?:ed|ion)|response|reasoning|thinking|new"
        r"|answer)[ _](?:tokens?|length|limit)|max(?:imum|\.)? (?:output|completion|generation|response|new)"
        r"|can (?:generate|produce)|the (?:answer|reply|response|completion) (?:has|is|was)"
        r"|in the (?:answer|reply))\b"),
     "The completion tokens exceed the limit of the model"),
    # Parts are counted together.
    Row("sum: total", (r"\b(?:total|combined|together|sum|in your|would exceed|plus)\b"),
     "Range of total length should be at most 8192"),
    # An idiom, which is removed before matching.
    Row("idiom: invalid input", (r"\b(?:input|request|prompt|schema) validation\b|\bvalidation (?:error|exception)\b"
        r"|\b(?:invalid|malformed|bad) (?:input|prompt|messages?|request)\b(?! is| was)|\binput should\b"),
     "Input validation: the value is larger than the limit, model 7"),
    Row("idiom: other contexts", (r"\bcontext (?:deadline|cancell?ed|manager)\b|\b(?:ssl|tls|execution"
        r"|browser) context\b|\bprompt cach\w{1,4}\b|\bcontext cach\w{1,4}\b|\bcached? content\b"),
     "ssl context: record too long"),
    # Another kind of error, with another remedy.
    Row("other error: rate limit", (r"\b(?:limit rate|[rt]p[mds]|itpm|otpm|recently|burst|rate window|time ?frame"
        r"|resets in|too many requests|please wait|slow down|back off|(?:usage|concurrency|spend\w{0,3}"
        r"|concurrent)[- _]?(?:limits?|requests|tokens))\b|\b(?:rate[-_ ]?limit|(?:in|for|within) the (?:last|past"
        r"|current) (?:\d|min|hour|day|sec)|tokens (?:in|within|every) \d{1,4} ?[smh]|throttl\w{1,6})|(?:\b"
        r"|_)per[ _-](?:min(?:ute)?|sec(?:ond)?|hour|day|week|month)s?\b|(?:/ ?|\ban? )(?:min|minute|hour|day|week"
        r"|month)\b"), "Token rate limit exceeded"),
    Row("other error: quota", (r"\b(?:quotas?|resource (?:has been )?exhausted|credits?|billing|balance|afford|payment"
        r"|prepaid|wallet|spend|costs?|remaining tokens|tokens (?:remaining|left)|token (?:allowance|allotment|balance"
        r"|budget(?!.{0,30}\bcontext)))\b|\$ ?\d"), "Prompt tokens exceed the quota"),
    Row("other error: limit of a plan", (r"\b(?:(?:daily|weekly|monthly|hourly|free[- ]tier|trial|account"
        r"|organi[sz]ation|workspace|subscription|plan|tier|team|user|key|project)(?:'s)? (?:\w{1,8} )?(?:tokens?|limit"
        r"|allowance|allotment|cap|budget)|(?:today|this (?:week|month|minute|hour)|for (?:your"
        r"|the) (?:\w{1,8} )?(?:account|plan|tier|key|day|project))|your plan"
        r"|upgrade (?:your|to continue)|per-model)\b"),
     "Monthly token limit exceeded"),
    Row("other error: access token", (r"\b(?:tokens? (?:is |has |have |was )?(?:been )?(?:expired|invalid|revoked"
        r"|malformed|missing)|(?:expired|invalid|revoked|missing|bad) (?:\w{1,14} )?tokens?|(?:access|refresh|bearer"
        r"|security|session|auth\w{0,12}|id|api|csrf|jwt|bot|verification|reset)[-_ ]tokens?(?! limit exceeded:)|jwt"
        r"|tokens? (?:registered|issued)|token (?:validation|verification|lifetime)|unexpected token"
        r"|maximum (?:lifetime|age)|(?:provided|supplied|given) token|api[-_ ]?keys?|unauthori[sz]ed|unauthenticated"
        r"|permission denied)\b"), "Invalid token: the input exceeds the maximum of the model"),
    Row("other error: other languages", (r"\b(?:pro (?:minute|tag|stunde)|par (?:minute|jour|heure)|solde|por (?:minuto"
        r"|dia|hora)|cuota|cota|saldo|al (?:minuto|giorno)|credito|expire)\b|\bквот|频繁|限流|限速|每分钟|每秒|每天"
        r"|速率|并发|稍后再?试|[rt]pm ?超|配额|额度|余额|欠费|账户|套餐|毎分|分あたり|レート制限|しばらくして|頻繁"
        r"|クォータ|残高|利用枠|분당|속도 제한|잠시 후|요청이 너무 많|할당량|잔액|크레딧|令牌(?:已)?(?:过期|失效|无效)"
        r"|鉴权|认证失败|有効期限|만료|유효하지|ratenlimit|zu viele anfragen|kontingent|guthaben|limite de (?:debit"
        r"|taux)|trop de requetes|limite de (?:tasa|velocidad)|demasiadas (?:solicitudes|peticiones)|limite de taxa"
        r"|muitas (?:solicitacoes|requisicoes)|limite di frequenza|troppe richieste|в (?:минуту|час|день|сутки)"
        r"|слишком много запросов|лимит запросов|баланс|срок действия токена|недействител"), "每分钟 token 超过上限"),
    Row("other error: cut already", (r"\b(?:(?<!\w )(?:truncating|clamping|resizing|splitting|skipping|applying"
        r"|processing (?:in|alone)|using (?:the )?(?:first|last))|(?:prompt|input|text|messages|tokens|history|some"
        r"|them) (?:\(?\d{1,6}\)? )?(?:was|were|has been|have been|will be) (?:truncated|compacted|shortened"
        r"|trimmed))\b"), "The prompt exceeds the context window; truncating it"),
    # The whole text is about another call.
    Row("other call: embedding", (r"\b(?:to|for|generat(?:e|ing)|creat(?:e|ing)|get(?:ting)?)[ _]embed(?:ding)?s?\b"
        r"|\bembeddings? (?:request|api|error|model|failed|validation)|임베딩|埋め込み|嵌入模型|向量化"),
     "Embedding request failed: the prompt exceeds the context window."),
    # The sentence is about something else.
    Row("other thing: string too long", (r"\b(?:string|array) with (?:a )?(?:max\w{0,4} )?length\b|\b(?:(?:string"
        r"|array)[_ ](?:is )?(?:too[_ ]long|above[_ ]max)(?! for (?:the |this )?(?:context|model)))"),
     "String too long in the messages"),
    Row("other thing: field", (r"\b(?:description|names?|title|field|label|metadata|user_?name|password|filename"
        r"|ur[il]s?|headers?|cookies?|identifier|property|schema|enum|pattern|path|suffix|sql|query string|certificate"
        r"|prompt_cache_key|index|chunk|batch|voice"
        r"|key)['\"`)\]]{0,3} (?:\(.{0,30}\) ?)?(?:\w{1,10} ){0,2}(?:too (?:long|large)|exceed\w{0,3}|longer|must"
        r"|at most|should)\b"), "The input description is too long"),
    Row("other thing: tool definition", (r"\b(?:tool[ _](?:name|description|schema|argument)s?|input_schema|(?:stop"
        r"|banned|special|bias|suppress\w{0,3})[ _]tokens?|allowed[ _]token[ _]ids|bad_words|logit_bias|stop"
        r" sequences?)\b|\b(?:tools?[\[.]\d|functions?[\[.]\d)"), "The tool schema in the input is too large"),
    Row("other thing: tool result", (r"\b(?:(?:tool(?! input)|mcp|file|page|search|command|plugin|server)\b"
        r".{0,60}\b(?:response|result|output|contents?)s?|output of|(?:mcp|tool|command|plugin)\b.{0,40}\breturned"
        r"|read tool|tool[ _]calls?)\b|\b(?:file contents? \(|(?:file|response|result"
        r"|diff) (?:content )?\(?(?:of )?\d[\d,.]{0,10} ?(?:tokens?|[km]b)?\)? (?:exceed|is too)|file (?:is|has) \d)"),
     "File content (9000 tokens) exceeds maximum allowed tokens"),
    Row("other thing: output cut", (r"\b(?:length limit was reached|(?:output|response|completion|reply|answer"
        r"|generation)\b.{0,60}\b(?:truncated|cut off|incomplete|stopped|ended)|could not finish|while generating"
        r"|unterminated|(?<!and )(?<!plus )"
        r"(?<!\+ )(?:output|response|reply|answer|embedding)s? (?:\w{1,6} )?(?:exceed\w{0,3}|too (?:long|large)))\b"),
     "The model's answer to the messages was cut off: limit reached"),
    Row("other thing: too small", (r"\b(?:too (?:small|short|low|few)(?! for (?:the|this|your)|: (?:the |your )?prompt)"
        r"|(?<!with )minimum|must be (?:positive|at least|divisible)|(?:num_ctx|n_ctx|n_batch|ctx-size|top_k"
        r"|offset) (?:must|should|cannot|exceeds)|n_ctx_train|n_ctx_per_seq|context[ _](?:window|length|size) (?:must"
        r"|should)|(?:configured|selected) (?:context|sequence)[_ ]\w{3,10}.{0,10} (?:exceeds|is larger))\b"),
     "The minimum of messages exceeds what the model has"),
    Row("other thing: engine start", (r"\b(?:out of memory|when initiali[sz]ing|(?:unable|failed) to (?:load|allocate)"
        r"|[gm]i?b of|rope|(?:could not|failed to) start|max_model_len (?:\S{1,12} )?is (?:larger|greater)"
        r"|trained (?:with|on|model|context))\b|\b(?:gpu_memory|derived max|kv cache (?:\(|is (?!full)|memory"
        r"|of )(?!.{0,30}max_kv_size)|in (?:the )?kv cache|max_num_batched|memory\b(?! (?:slot|window))"
        r"|train(?:ing)? (?:context|example|sample|file|data)|cache (?:entry|limit)|session file|fine-?tun)"),
     "The model's max seq len is larger than what is stored in KV cache"),
    Row("other thing: server", (r"\b(?:overloaded|service unavailable|at capacity|queue|(?:took|taking|takes?|waited"
        r"|waiting|ran) (?:for )?(?:\w{1,8} )?(?:too long|longer)|too long to (?:respond|process|complete|finish|load"
        r"|generate|answer|run|start)|e?time(?:d)?[ -]?out|certificate|segmentation fault|unknown flag)\b|\b(?:(?:try"
        r"|retry)(?:ing)? (?:again )?(?:later|after|in \d)|connection (?:refused|reset|error|closed))"),
     "Input tokens exceed the capacity, try again later"),
    Row("other thing: denied", (r"\b(?:(?:does|do|did|has|have|is|are|was|were) ?(?:not"
        r"|n't) (?:\w{1,10} )?(?:exceed\w{0,3}|too (?:long|large)|longer|larger)|approaching|but acceptable|to avoid"
        r"|(?:automatically|will be|being|was|been|is|are|successfully) (?:truncated|compacted|shortened|trimmed))\b"
        r"|(?<!fit )\bwithin (?:the |its )?(?:limits?|context)|已(?:自动)?(?:截断|压缩)"),
     "The prompt does not exceed the context window"),
    Row("other thing: not available", (r"\b(?:not (?:yet )?available|deprecated|does not exist|billed at"
        r"|content[_ -](?:filter\w{0,4}|policy|management)|flagged|moderat\w{2,3})\b"),
     "Prompts of more than 200000 tokens are not available, over the limit"),
    Row("other thing: limit of another thing", (r"\b(?:(?:image|speech|voice|audio) (?:model|generation|synthesis)"
        r"|(?:in|per|submitted) batch|enqueued|clip|per (?:chunk|item|row|document)|(?:search|vector) index|(?:prompt"
        r"|context|conversation|history|chat|message|token)s?[ _](?:depth|nesting|retention|(?<!chat )template|id)"
        r"|(?:recursion|iteration|call stack|turn|nesting|stack) (?:limit|size|depth)s?|concurrent)\b"),
     "maximum context depth exceeded in parser"),
    Row("other thing: east Asian", (r"(?:名称|昵称|描述|标题|字段|用户名|密码|文件名|参数名)(?:长度|输入)?(?:过长|太长"
        r"|超过|超出|不能超过)"), "提示词的名称过长"),
    # Something else is counted, unless tokens or a context are mentioned too.
    Row("other unit: things", (r"\b(?:too many|at most|up to|more than|limit of|takes|has|contains|(?:number|count"
        r"|amount) of|max(?:imum)?(?: number)?(?: of)?) (?:\d{1,6} )?(?:\w{1,14} ){0,2}(?:image|document|tool|function"
        r"|file|attachment|item|element|request|choice|stop sequence|message|turn|step|block|page|video|label|propertie"
        r"|input|text|row|key|section|breakpoint|word|device)s\b(?! tokens?)"),
     "There are too many tools: the messages are too large for the model"),
    Row("other unit: media", (r"\b(?:batch|embedding)\b|\b(?:images?|audio|video|speech|voice|file|attachment|pdf"
        r"|document)s?\b.{0,40}(?:\btoo (?:large|long|big)|\bexceed)"), "The batch of inputs is too large"),
    Row("other unit: characters", (r"\b(?:characters?|chars|words|bytes?|[kmg]i?b|megabytes?|kilobytes?|pixels?|px"
        r"|octets|seconds|minutes|hours|days|pages|body size|(?:body|content|entity|payload) too large(?! for))\b"
        r"|\d[kmg]i?b\b"),
     "The input exceeds the maximum of the model: 5000 characters"),
    Row("other unit: other languages", (r"\b(?:zeichen|bild(?:er)?|caracteres|fichiers?|arquivos?|caratter\w)\b"
        r"|\b(?:datei|файл)|(?:图片|图像|文件|工具|函数|轮次)(?:数量|个数|数|太多|过多|过大)|\d ?(?:张|个文件|轮)|字符"
        r"|个字|字节|\d ?枚|画像|ファイル|文字|이미지|파일|글자|\d ?자\b|바이트|символ\w{0,3}"), "输入图片过大"),
)
# fmt: on
