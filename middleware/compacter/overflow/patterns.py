"""The table, first part: the words that say that a request is too long for a model.

A row has a name, a pattern, and one message that is missed without it; it stands under its meaning. Names start with
the language (ISO 639-1) where the words are not English. To know a new provider's text, add a row here with the text,
in words of your own, as its sample; see docs/detector.md.
"""

from __future__ import annotations

from typing import Final

from compacter.overflow.table import Meaning, Row, rows

# fmt: off
PATTERNS: Final[tuple[Row, ...]] = (
    *rows(Meaning.CODE,
        ("context_length_exceeded", (r"\b(?:max_?)?(?:model_?)?(?:context|prompt|input)_?(?:window|length"
          r"|size|tokens?|limit)_?\w{0,6}_?exceeded\b"), "request failed: context_length_exceeded"),
        ("prompt_too_long", (r"\b(?:context|prompt|input|history|conversation|messages)_(?:is_)?too_(?:long"
          r"|large)\b"), "request failed: prompt_too_long"),
        ("context_overflow", r"\bcontext_?(?:window_?|length_?)?overflow\w{0,10}\b",
         "failed: context_overflow_error"),
        ("exceed_context_size_error", r"\bexceeds?_(?:max_)?context\w{0,20}\b",
         "type: exceed_context_size_error"),
        ("context_limit", (r"\b(?:context|prompt|input)_?(?:window|length|size)?_?(?:limit"
          r"|error)\b(?! ?[=:(])"), "failed: context_limit"),
        ("tokens_limit_reached", r"\b(?:max_)?tokens?_limit_(?:reached|exceeded)\b",
         "code: tokens_limit_reached"),
        ("model_max_prompt_tokens_exceeded", (r"\b(?:model_)?max_(?:prompt_|input_"
          r"|context_)?\w{0,12}_exceeded\b"), "code: model_max_prompt_tokens_exceeded"),
    ),
    *rows(Meaning.TYPE,
        ("ContextWindowExceededError", (r"context(?:window|length|size|limit)(?:limit|size)?(?:exceed"
          r"|overflow|error)"), "ContextWindowExceededError"),
        ("ExceededContextWindow", r"exceed(?:s|ed|ing)?(?:max|model)?(?:context|token)",
         "ExceededContextWindow"),
        ("ContextOverflowError", r"contextoverflow", "ContextOverflowError"),
        ("PromptTooLong", r"(?:prompt|input|context|conversation)toolong", "PromptTooLongError"),
        ("TokenLimitExceeded", r"tokenlimit(?:exceed|reach|error)", "TokenLimitExceededError"),
    ),
    *rows(Meaning.CONTEXT,
        ("context window", (r"context[\s_-]{0,2}(?:window|length|size|len\b|limit|capacity|budget|space"
          r"|maximum)s?"), "it does not fit the context window"),
        ("n_ctx", (r"\b(?:n_ctx|num_ctx|ctx[_ -]?(?:len|size))\b|\bmodel_max_\w{3,12}"
          r"|\btotal (?:sequence|context) length\b"), "larger than n_ctx"),
        ("max_model_len", (r"\bmax_?(?:seq(?:uence)?|model|context|position|total|input"
          r"|prompt)_?(?:len(?:gth)?|size|embeddings|tokens)?\b"), "it is longer than max_model_len"),
        ("maximum input length", (r"\bmax(?:imum|\.)? (?:\w{3,10} ){0,2}(?:sequence|seq|context|prompt"
          r"|input)s?(?: (?:token )?(?:length|len|size)\b)?"), "It exceeds the max seq length"),
        ("input length limit", (r"\b(?:sequence|prompt|input|session) (?:length|max|token) ?(?:limit"
          r"|maximum|max|length)\b"), "exceed session max length"),
        ("model's maximum length", (r"(?:model|llm)'?s? (?:max(?:imum)?|total) (?:sequence "
          r"|token )?(?:length|len\b)"), "it exceeds the model's maximum length"),
        ("model's context", (r"\bmodel(?:'?s)? (?:context|window)\b"
          r"|\bcontext of (?:the|this|its) \w{0,12} ?model\b"
          r"|\b(?:loaded|available|supported|configured) context\b|\btokens? (?:context|window)\b"),
         "It exceeds the loaded context"),
        ("zh", r"(?:上下文|文本)的?(?:最大)?(?:长度|窗口|大小|上限|限制|視窗|長度)|最大上下文|序列长度",
         "上下文长度超限"),
        ("ja", r"コンテキストの?(?:最大)?(?:長|ウィンドウ|サイズ|上限|制限)|最大コンテキスト",
         "コンテキスト長を超えています"),
        ("ko", r"(?:컨텍스트|문맥) ?(?:최대 )?(?:길이|윈도우|창|크기|한도|제한)",
         "컨텍스트 길이를 초과했습니다"),
        ("de", r"kontext(?:fenster|lange|grosse|limit)|maximale[nrs]? (?:kontext|prompt|eingabe)\w{0,12}",
         "Kontextfenster überschritten"),
        ("fr", (r"fenetre (?:de |du )?context\w{0,2}"
          r"|(?:longueur|taille|limite) (?:max\w{0,5} )?(?:de |du )?context\w{0,2}"),
         "La fenêtre de contexte est dépassée"),
        ("es", (r"ventana de contexto|(?:longitud|tamano|limite) (?:maxim[ao] )?(?:de|del) contexto"
          r"|contexto permitido"), "Excede el contexto permitido"),
        ("pt", r"janela de contexto|(?:comprimento|tamanho|limite) (?:maxim[ao] )?(?:de|do) contexto",
         "Ultrapassa a janela de contexto"),
        ("it", (r"finestra (?:di|del) contesto"
          r"|(?:lunghezza|dimensione|limite) (?:massim[ao] )?(?:di|del) contesto"),
         "Supera la finestra di contesto"),
        ("ru", (r"контекстн\w{1,4} окн\w{0,3}|окн\w{0,3} контекста"
          r"|(?:длин\w{1,2}|размер\w{0,2}|лимит\w{0,2}) контекста"), "Превышена длина контекста"),
    ),
    *rows(Meaning.SUBJECT,
        ("prompt", r"\b(?:n_)?(?:input|prompt)_tokens\b|\bprompts?\b|\binputs?\b|\bcontext\b|\bsequence\b",
         "The prompt is too long"),
        ("conversation", (r"\bconversation\b|\bchat\b|\bhistory\b|\bmessages\b|\bdialog(?:ue)?\b"
          r"|\btranscript\b|\bthread\b"), "The conversation is too long"),
        ("zh", r"输入|提示词?|上下文|对话|消息|历史|会话|輸入|訊息|歷史|對話", "对话过长"),
        ("ja", r"入力|プロンプト|コンテキスト|会話|メッセージ|履歴", "会話が長すぎます"),
        ("ko", r"입력|프롬프트|컨텍스트|대화|메시지|기록", "대화가 너무 깁니다"),
        ("de", r"\beingabe|\bnachrichten\b|\bkontext|\bunterhaltung\b|\bverlauf|\bgesprach|\bkonversation",
         "Die Unterhaltung ist zu lang"),
        ("fr", r"\bentree\b|\binvite\b|\bcontexte\b|\bhistorique\b", "L'historique est trop long"),
        ("es", r"\bentrada\b|\bcontexto\b|\bmensajes\b|\bconversacion\b|\bhistorial\b",
         "La conversación es demasiado larga"),
        ("pt", r"\bmensagens\b|\bconversa\b|\bhistorico\b", "A conversa é longa demais"),
        ("it", r"\bcontesto\b|\bmessaggi\b|\bconversazione\b|\bcronologia\b",
         "La conversazione è troppo lunga"),
        ("ru", r"промпт|контекст|сообщени[йяе]|\bввод|входн|диалог|истори", "Слишком длинный диалог"),
    ),
    *rows(Meaning.REQUEST,
        ("request", r"\brequest(?:ed|s)?\b|\bquery\b|\bpayload\b|\bmessage\b|\btexts?\b|\bcontent\b",
         "The request is too large for this model"),
        ("zh", r"请求|內容|内容|文本|請求", "请求过长，模型无法处理"),
        ("ja", r"リクエスト|テキスト", "リクエストがモデルには長すぎます"),
        ("ko", r"요청|텍스트", "요청이 모델에 너무 깁니다"),
        ("de", r"\banfrage\b|\btext\b", "Die Anfrage ist zu lang für das Modell"),
        ("fr", r"\brequete\b|\bdemande\b|\btexte\b", "La requête est trop longue pour le modèle"),
        ("es", r"\bsolicitud\b|\bpeticion\b|\btexto\b", "La petición es demasiado larga para el modelo"),
        ("pt", r"\bsolicitacao\b|\brequisicao\b|\bpedido\b", "A solicitação é longa demais para o modelo"),
        ("it", r"\brichiesta\b|\btesto\b", "La richiesta è troppo lunga per il modello"),
        ("ru", r"запрос|текст", "Запрос слишком длинный для модели"),
    ),
    *rows(Meaning.TOKEN,
        ("token", r"(?<![a-z_])tok(?:en|s?\b)", "token limit exceeded"),
        ("zh", r"词元|令牌", "令牌超出上限"),
        ("ja", r"トークン", "トークンが上限を超えています"),
        ("ko", r"토큰", "토큰 한도를 초과했습니다"),
        ("fr", r"\bjetons?\b", "La limite de jetons est dépassée"),
        ("ru", r"токен", "Превышен лимит токенов"),
    ),
    *rows(Meaning.MODEL,
        ("model", r"\bmodel|\bllm\b|\bendpoint\b|\bdeployment\b",
         "The history is more than what the model takes: it exceeds it"),
        ("zh", r"模型", "请求过长，模型无法读取"),
        ("ja", r"モデル", "リクエストがモデルには長すぎる"),
        ("ko", r"모델", "요청이 모델에는 너무 깁니다"),
        ("ru", r"модел", "Запрос слишком велик для модели"),
    ),
    *rows(Meaning.EXCEED,
        ("exceed", (r"\bexce{1,2}d(?:s|ed|ing)?\b|\bsurpass\w{0,3}\b|\bovershoot\w{0,3}\b"
          r"|\boverflow(?:s|ed|ing)?\b|\bexcess\b|\boutgr(?:ow|ew)\w{0,2}\b"),
         "It surpasses the context window"),
        ("longer than", r"\b(?:longer|larger|greater|bigger|more|higher) than\b|\bgreater or equal\b",
         "It is longer than the context window"),
        ("over", r"\b(?:is|are|was|goes|went|grown|\d|tokens?) (?:over|above|beyond|past)\b|\bover the\b",
         "It went past the context window"),
        ("zh", r"超过|超出|超限|大于|超過|多于", "超出上下文窗口"),
        ("ja", r"超え|上回|オーバー|超過", "コンテキスト長を上回っています"),
        ("ko", r"초과|넘었|넘습|넘어|넘는|보다 (?:길|깁|큽|크|많)", "컨텍스트 길이를 넘었습니다"),
        ("de", r"uberschr(?:eit|itt)\w{0,4}|uberst(?:eig|ieg)\w{0,4}|\b(?:langer|grosser|mehr) als\b",
         "Das Kontextfenster wurde überschritten"),
        ("fr", r"\bdepass\w{0,5}\b|\b(?:plus (?:long|grand)\w{0,2}|superieur\w{0,2}) (?:que|a)\b",
         "Le prompt dépasse la taille de contexte"),
        ("es", r"\bexced\w{1,4}\b|\bsuper[ao]\w{0,4}\b|\bsobrepas\w{1,4}\b|\b(?:mas larg[ao]|mayor) que\b",
         "Sobrepasa la ventana de contexto"),
        ("pt", r"\bultrapass\w{1,4}\b|\b(?:maior|mais long[ao]) (?:do )?que\b",
         "O texto ultrapassou a janela de contexto"),
        ("it", r"\beccede\w{0,3}\b|\boltrepass\w{1,4}\b|\b(?:maggiore|piu lung[ao]) (?:di|del|della)\b",
         "Eccede la finestra di contesto"),
        ("ru", r"превы[шс]\w{0,6}|больше,? чем|длиннее", "Превышена длина контекста модели"),
    ),
    *rows(Meaning.TOO_LONG,
        ("too long", (r"\btoo (?:long|large|big|lengthy)\b|\boversized?\b|\bexcessively long\b"
          r"|\blonger than that\b|\b(?:is|are) (?:longer|larger)\b(?! than)"), "The chat is too long"),
        ("zh", r"过长|太长|过大|超长|太大|過長|太長", "输入过长"),
        ("ja", r"長すぎ|大きすぎ", "入力が長すぎます"),
        ("ko", r"너무 ?(?:길|깁|긴|큽|크)", "프롬프트가 너무 깁니다"),
        ("de", r"\bzu (?:lang|gross)", "Der Prompt ist zu lang"),
        ("fr", r"\btrop (?:long|grand|volumineu)\w{0,3}", "Le prompt est trop long"),
        ("es", r"\b(?:demasiado|muy) (?:larg|grand|extens)\w{0,2}", "El prompt es demasiado largo"),
        ("pt", r"\bmuito (?:long|grande)\w{0,2}|\b(?:longo|longa|grande)s? demais\b",
         "O prompt é longo demais"),
        ("it", r"\btroppo (?:lung|grand)\w{0,2}", "Il prompt è troppo lungo"),
        ("ru", r"слишком (?:длин|больш|велик)\w{0,4}", "Слишком длинный промпт"),
    ),
    *rows(Meaning.TOO_MANY,
        ("too many tokens", (r"\btoo many (?:\w{1,14} ){0,2}tokens?\b"
          r"|\btokens? count (?:is )?too (?:high|large)\b"), "The prompt has too many tokens"),
        ("text bytes", r"\btoo many (?:total )?text bytes\b", "too many total text bytes"),
        ("zh", r"(?:tokens?|令牌|词元)(?:数量?)? ?(?:过多|太多)", "输入的 token 过多"),
        ("ja", r"トークン数?が多すぎ", "入力のトークン数が多すぎます"),
        ("ko", r"토큰이? 너무 많", "입력 토큰이 너무 많습니다"),
        ("de", r"\bzu viele tokens?\b", "Zu viele Tokens im Prompt"),
        ("fr", r"\btrop de (?:tokens|jetons)\b", "Trop de jetons dans le prompt"),
        ("es", r"\bdemasiados tokens\b", "Demasiados tokens en el prompt"),
        ("pt", r"\btokens demais\b|\bmuitos tokens\b", "Tokens demais no prompt"),
        ("it", r"\btroppi token\b", "Troppi token nel prompt"),
        ("ru", r"слишком много токенов", "Слишком много токенов в промпте"),
    ),
    *rows(Meaning.FULL,
        ("full", r"\bis full\b|\bfilled up\b|\bexhausted\b|\bmaxed out\b|\b(?:limit|window|length) hit\b",
         "The context window is full"),
        ("no room", (r"\bout of (?:room|space|context)\b"
          r"|\b(?:no|not enough|insufficient) (?:more )?(?:room|space)\b"), "No room in the context window"),
        ("reached", r"(?<!be )(?<!not )\breached\b|\bno longer fits?\b", "Maximum context length reached"),
        ("does not fit", (r"(?:\bnot|n't|\bcannot|\bunable to|n't|\bdoesnt) (?:\w{1,10} )?(?:fit"
          r"|accommodate)\b"), "Can't fit it into the context window"),
        ("zh", r"已满|已达|用尽|放不下", "上下文窗口已满"),
        ("ja", r"いっぱい|達し|収まり", "コンテキスト上限に達しました"),
        ("ko", r"가득|도달", "컨텍스트 한도에 도달했습니다"),
        ("de", r"passt nicht|\bvoll\b|\berreicht\b", "Das Kontextfenster ist voll"),
        ("fr", r"\batteint|\bpleine?\b|\bne tient pas\b", "La fenêtre de contexte est pleine"),
        ("es", r"\bno cabe\b|\balcanz|\bllen[ao]\b", "No cabe en la ventana de contexto"),
        ("pt", r"\bnao cabe\b|\bating\w{1,3}\b|\bchei[ao]\b", "Não cabe na janela de contexto"),
        ("it", r"\braggiunt|\bnon entra\b|\bpien[ao]\b", "La finestra di contesto è piena"),
        ("ru", r"исчерпан|достигнут|заполнен|не помеща|переполн", "Окно контекста заполнено"),
    ),
    *rows(Meaning.LIMIT,
        ("limit", (r"\blimit|\bmax(?:imum)?\b|\bcapacity\b|\ballow(?:s|ed)\b|\bthreshold\b|\bcap\b"
          r"|\bsupported\b"), "The tokens exceed what is allowed"),
        ("zh", r"上限|限制|最大|最长|最多|允许", "token 超过限制"),
        ("ja", r"上限|最大|制限", "トークン数が制限を超えています"),
        ("ko", r"한도|제한|최대|허용", "토큰이 제한을 초과했습니다"),
        ("de", r"\bgrenze\b|\bmaxim|\bhochst|\berlaubt", "Tokens überschreiten die Grenze"),
        ("it", r"\bmassim", "I token superano il massimo"),
        ("ru", r"лимит|предел|максим|допустим", "Токены превышают предел"),
    ),
    *rows(Meaning.LENGTH,
        ("length", r"\b(?:length|size|len|long)\b", "The prompt exceeds the allowed length"),
    ),
    *rows(Meaning.BOUND,
        ("must be at most", (r"\b(?:must|should|shall|ha(?:s|ve) to|needs? to|can"
          r"|may)(?: only)? (?:not )?(?:be|have|contain|exceed)\b.{0,30}?(?:\d"
          r"|\b(?:less|fewer|most|more|greater|larger|longer|shorter|smaller|under|below|within|between)\b"
          r"|<)"), "The input must have less than 8192 tokens"),
        ("expected at most", (r"\b(?:expected|accepts|takes|allows|supports|handles?"
          r"|limited to)(?: only)?(?: at most| up to)? \d"), "This input: expected at most 8192 tokens"),
        ("only so much", r"\b(?:can|could|will) (?:only|at most) (?:\w{2,10} )(?:up to )?\d",
         "The model can only read 8192 tokens of the prompt"),
        ("cannot exceed", (r"\b(?:cannot|can't) (?:be (?:more|greater|larger|longer)|have more|exceed)\b"
          r"|\brange of\b"), "Range of input length is [1, 8192]"),
        ("zh", r"不能超过|不得超过|不可超过|应小于|必须小于|不超过", "输入 token 必须小于 8192"),
    ),
    *rows(Meaning.REDUCE,
        ("reduce", (r"\b(?:reduc|shorten|decreas|truncat|trim|shrink|shorter|compact|drop|remov"
          r"|summari[sz])\w{0,4}\b"), "Please reduce the length of the messages."),
        ("zh", r"减少|缩短|精简|缩减", "请缩短输入"),
        ("ja", r"減ら|短く", "入力を短くしてください"),
        ("ko", r"줄여|줄이", "입력을 줄여 주세요"),
    ),
)
"""What a token limit is told by."""
# fmt: on
