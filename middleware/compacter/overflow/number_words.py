"""The table, third part: the words beside a number that tell what it counts.

In the samples the limit is 8192 and the request 9000 tokens; without its row a sample's numbers are read wrongly.
"""

from __future__ import annotations

from typing import Final

from compacter.overflow.table import Meaning, Row, rows

# fmt: off
NUMBER_WORDS: Final[tuple[Row, ...]] = (
    *rows(Meaning.LIMIT_BEFORE,
        ("maximum", (r"\bmax(?:imum|imal\w{0,2}"
          r"|\.)?(?: (?:allowed|supported|permitted|number|total|input|prompt|context|sequence|tokens?"
          r"|length|size|window|limit|count|combined|capacity|configured|model|request|of|is|was|for|the"
          r"|this|your|has|which|that|to)){0,9}"), "The prompt is too long, maximum 8192"),
        ("max_model_len", (r"(?:\b|_)max_(?!(?:new_|completion_|output_)?tokens)\w{1,24}|\b(?:n|num)_ctx\b"
          r"|\btoken_limit\b"), "The prompt is too long, n_ctx 8192"),
        ("limit", (r"\blimit(?:s|ed"
          r"|e)?\b(?: (?:of|is|was|for|the|this|your|our|a|an|model|has|have|which|that|to|tokens?)){0,4}"),
         "The prompt is too long, limit 8192"),
        ("context window", (r"\bcontext[ _-](?:window|length|size|limit|len|capacity|budget)(?: holds"
          r"| limit)?(?: (?:of|is|was|for|the|this|your|our|a|an|model|has|have|which|that|to"
          r"|tokens?)){0,4}"
          r"|\b(?:model'?s?|loaded|available|supported) (?:context"
          r"|window)\b(?![ _-](?:window|length|size|limit|len|cap|bud))"),
         "Prompt too long; loaded context 8192"),
        ("at most", (r"\bat most\b|\bup to\b|<=?|\bunder\b|\bbelow\b|\bwithin\b"
          r"|\b(?:less|fewer|shorter) than(?: or equal to)?"), "The prompt is too long, at most 8192"),
        ("more than", (r"\b(?:longer|larger|greater|more|bigger|higher) than\b|\bbeyond\b|\babove\b"
          r"|\bover\b|[^-]>=?"), "The prompt is longer than 8192 tokens"),
        ("exceeds", r"\bexce{1,2}d(?:s|ing)?\b|\bexce{1,2}ded\b(?! ?[:,;(])|\bsurpass(?:es|ing)?\b",
         "The prompt exceeds 8192 tokens"),
        ("supports", (r"\b(?:allow(?:s|ed)?|supports?|accepts?|takes?|handles?|available|configured"
          r"|capacity|threshold|only|expected|reads?|window)\b(?: (?:at most|up to|only))?"),
         "The prompt is too long, the model supports 8192"),
        ("range", r"\[[01], ?|\bbetween \d{1,3} and\b", "The range of the input length is [1, 8192]"),
        ("zh", (r"(?:最大|上限|限制|最长|最多|不能超过|不得超过|不超过|超过|超出|小于|窗口)(?:输入|上下文"
          r"|允许|支持)?的?(?:长度|限制|上限|了|为)?"), "提示词过长，不超过 8192"),
        ("ja", r"(?:最大|上限|制限)(?:入力|コンテキスト|トークン)?(?:長|数|サイズ)?(?:である|の|値)?",
         "入力が長すぎます、制限 8192"),
        ("ko", r"(?:최대|한도|제한)(?: ?(?:컨텍스트|입력|토큰))?(?: ?(?:길이|수|크기))?",
         "입력이 너무 깁니다, 한도 8192"),
        ("de", (r"\bgrenze\b(?: von)?|\bhochst\w{0,10}|kontextfenster|uberschreitet|ubersteigt"
          r"|\b(?:langer|mehr) als\b"), "Der Prompt ist zu lang, höchstens 8192"),
        ("fr", r"depasse(?: la limite)?|\baccepten?t? que\b|\bmaximale?\b(?: (?:de|du|contexte|est)){0,4}",
         "La fenêtre de contexte est dépassée; le modèle accepte que 8192 tokens"),
        ("es", r"excede|supera|\bmaxim[ao]\b(?: (?:de|del|contexto|este|modelo|es|permitid[ao])){0,6}",
         "El prompt supera 8192 tokens"),
        ("pt", r"ultrapassa", "O prompt ultrapassa 8192 tokens"),
        ("it", r"\bmassim\w(?: (?:di|consentit\w))?|eccede", "Il prompt è troppo lungo, massimo 8192"),
        ("ru", (r"лимит\w{0,2}|максим\w{0,10}(?: (?:длин\w{1,3}|контекста|числ\w)){0,2}|предел\w{0,2}"
          r"|превыша\w{1,3}"), "Слишком длинный промпт, предел 8192"),
    ),
    *rows(Meaning.LIMIT_AFTER,
        ("maximum", (r"(?:is |was |are |as )?(?:the |model'?s? |our |its )?(?:model |token |input |prompt "
          r"|total )?(?:max(?:imum)?\b|limit\b|cap\b|ceiling\b"
          r"|context\b(?: window| length| size| limit)?(?! \d)|window\b|allowed\b|supported\b)"),
         "The prompt is too long, 8192 cap"),
        ("zh", r"上限|限制", "提示词过长，8192 限制"),
        ("ja", r"の?(?:上限|制限|最大)|を(?:超|上回|オーバー)", "入力が長すぎます、8192を超え"),
        ("ko", r"(?:을|를) (?:초과|넘)|(?:의 )?(?:한도|제한)", "입력이 너무 깁니다, 8192를 초과"),
        ("de", r"hochst|maximum|maximal|erlaubt", "Der Prompt ist zu lang, 8192 erlaubt"),
        ("fr", r"autorise|maximum|au maximum", "Le prompt est trop long, 8192 autorisés"),
        ("es", r"permitid|maximo", "El prompt es demasiado largo, 8192 permitidos"),
        ("it", r"consentit|massimo", "Il prompt è troppo lungo, 8192 consentiti"),
        ("ru", r"максим|лимит|допустим", "Слишком длинный промпт, 8192 допустимо"),
    ),
    *rows(Meaning.SENT_BEFORE,
        ("requested", (r"\brequest(?:ed|s|ing)?\b(?:[_ ]tokens?| a total| about| up to| count| size"
          r"| length){0,2}"), "The context window is exceeded, requested 9000"),
        ("contains", (r"\b(?:contain|total|hold|use|come|amount|add|sum|need|require)(?:s|ed"
          r"|ing)?\b(?: (?:up )?(?:of|to|tokens?))?(?: over| more than)?"
          r"|\bha(?:s|d|ve)\b(?: over| more than)?"), "The context window is exceeded, it needs 9000"),
        ("resulted in", (r"\bresult(?:ed|s) in\b(?: over| more than)?"
          r"|\b(?:got|gave|given|received|supplied|provided|sent|submitted|asked for|passed)\b"),
         "The context window is exceeded, it resulted in 9000"),
        ("current", (r"\b(?:current|actual|used|estimated"
          r"|measured)(?:ly)?(?: (?:length|size|tokens?|usage|count))?"),
         "The context window is exceeded, currently 9000"),
        ("too long", (r"\btoo (?:long|large|many|big)\b(?: tokens)?|\bkeep the first\b|\bcount(?: of)?\b"
          r"|\b(?:was|were|value)\b"), "Too long for the context window: value 9000"),
        ("n_tokens", r"\b(?:n|num|total)_tokens\b|\btoken_count\b|\bsequence(?: length)?(?: is| of)?\b",
         "The context window is exceeded, n_tokens: 9000"),
        ("zh", (r"(?:请求|当前|实际|本次|共|总计|达到|传入|发送|您的)[了的]?总?(?:token数?|tokens?|长度"
          r"|数量|为|是)?|总长度|总数|长度"), "超出上下文窗口，当前 9000"),
        ("ja", r"(?:リクエスト|現在|合計|要求|実際)[はの]?(?:トークン数)?|トークン数",
         "コンテキスト長を超えています、現在 9000"),
        ("ko", r"(?:요청|현재|총|전송|실제)(?:된|한)?(?: ?토큰)?(?: ?수)?|토큰 수",
         "컨텍스트 길이를 초과했습니다, 현재 9000"),
        ("de", r"\bange(?:fordert|fragt)\w{0,2}|\benthalt|\bsind\b|\baktuell\w{0,2}",
         "Kontextfenster überschritten, angefordert 9000"),
        ("fr", r"\bdemande\w{0,2}|\bcontient|\bcompt\w{1,2}\b|\bcomporte\b",
         "Fenêtre de contexte dépassée, demandés 9000"),
        ("es", r"\bsolicit\w{1,5}|\bcontiene\b|\btiene\b|\benviad\w{1,2}\b",
         "Excede la ventana de contexto, solicitados 9000"),
        ("pt", r"\bcontem\b|\btem\b|\bpossui\b|\benviad\w{1,2}\b",
         "O prompt ultrapassa a janela de contexto, tem 9000"),
        ("it", r"\brichiest\w{1,2}|\bcontiene\b|\bha\b", "Eccede la finestra di contesto, richiesti 9000"),
        ("ru", r"запрошен\w{0,2}|содерж\w{1,3}|составля\w{1,3}|получен\w{0,2}",
         "Превышен размер контекста, запрошено 9000"),
    ),
    *rows(Meaning.SENT_AFTER,
        ("exceeds", (r"(?:,? ?(?:which |that |and )?(?:is |are |was |were )?(?:>=?"
          r"|exce{1,2}d(?!ed(?: by| ?[:,;.(]|$))|surpass(?!ed)|too (?:long|large|many)|over\b|above\b"
          r"|(?:longer|larger|greater|more|bigger) than))|cannot |vs\b|/ ?\d"),
         "Context window: 9000 exceeds it"),
        ("of a maximum", r"(?:for|out of|of|against|versus) (?:a |an |the )?(?:max|limit|\d)",
         "The context window is exceeded: 9000 against the limit"),
        ("were sent", (r"(?:were |was )?(?:given|supplied|provided|requested|received|submitted|sent|used"
          r"|in use)\b|long\b"), "The context window is exceeded: 9000 were sent"),
        ("zh", r"超过|超出|大于", "上下文超长：9000 大于"),
        ("ja", r"が(?:上限|最大|制限|コンテキスト)|が(?:入力|リクエスト|要求|送信)",
         "コンテキスト長の超過、9000が上限を"),
        ("de", r"uberschr|uberst|ange(?:fordert|fragt)|(?:bei|von) (?:einem |maximal)",
         "Kontextfenster überschritten: 9000 angefordert"),
        ("fr", r"depass|demande|(?:pour|sur) (?:un )?max", "Fenêtre de contexte dépassée: 9000 demandés"),
        ("es", r"exced|super[ao]|solicitad", "Excede la ventana de contexto: 9000 solicitados"),
        ("pt", r"ultrapass", "Janela de contexto: 9000 ultrapassam"),
        ("it", r"eccede|richiest", "Finestra di contesto superata: 9000 richiesti"),
        ("ru", r"превыша|больше|запрош|при максимуме", "Превышен размер контекста: 9000 запрошено"),
    ),
    *rows(Meaning.INPUT_BEFORE,
        ("prompt", (r"\b(?:n_)?(?:prompt|input|messages?|context|text)[_ ]?(?:tokens?|length|len"
          r"|size)?(?: (?:length|count|has|is|of))?\b(?: at least)?"),
         "It exceeds the context window: prompt 9000"),
        ("zh", r"(?:输入|提示词?|消息)的?(?:长度|tokens?|token数)?", "超出最大上下文，输入 9000"),
        ("ja", r"入力(?:トークン)?(?:数|長)?|プロンプト長?", "コンテキスト長を超えています、入力 9000"),
        ("ko", r"입력(?: ?토큰)?(?: ?수)?", "컨텍스트 길이를 초과했습니다, 입력 9000"),
    ),
    *rows(Meaning.INPUT_AFTER,
        ("in the messages", (r"(?:(?:in|for|from|of|as) (?:the |your )?(?:text )?)?`?'?(?:requests?\b"
          r"|messages?\b|prompts?\b|inputs?\b|conversation|text\b)"),
         "The context window is exceeded, as there are 9000 in the prompt"),
        ("other languages", r"(?:im|in der|dans|en el|em|nel) (?:le )?(?:prompt|eingabe)",
         "Fenêtre de contexte dépassée: 9000 dans le prompt"),
    ),
    *rows(Meaning.OUTPUT_BEFORE,
        ("max_tokens", (r"\bmax_?tokens\b|\bmax[_ ]?(?:new|completion|output)[_ ]?tokens\b|\bcompletion\b"
          r"|\boutput(?: tokens?)?\b|\breserved\b|\bgeneration\b"),
         "The context window of 8192 is exceeded: messages 8000, max_tokens 1000"),
    ),
    *rows(Meaning.OUTPUT_AFTER,
        ("in the completion", (r"(?:(?:in|for|from|as|of) (?:the |your )?(?:requested )?)?`?'?(?:completion"
          r"|output|response|generation|reply|answer|max_\w{0,20}tokens)"),
         "The context window of 8192 is exceeded: messages 8000, 1000 for the completion"),
    ),
    *rows(Meaning.NO_COUNT_BEFORE,
        ("status", (r"\b(?:status(?:[_ ]?code)?|error(?:[_ ]?code)?|err(?:no|code)?|code|https?|line|port"
          r"|attempts?|retr(?:y|ied)|version|v|ref|id|pid|step|index|trace|after|temperature|seed|错误码"
          r"|エラー|오류)[\"']?(?: ?[:=#] ?| \(?|\()[\"'#]?$"), "The context window is exceeded, error 8193"),
    ),
    *rows(Meaning.NO_COUNT_AFTER,
        ("overshoot", r" ?tokens? (?:over|too many|too long|longer|more than|above|beyond|past)\b",
         "The context window is exceeded: it has 808 tokens too many"),
        ("time", (r"[)\]]? ?-?(?:seconds?|secs?|s\b|ms\b|min(?:ute)?s?\b|hours?|days?|秒|分钟|секунд"
          r"|sekunden|secondes|segundos)"), "The context window is exceeded, it took 950 ms"),
        ("bytes", (r"[)\]]? ?-?(?:bytes?|[kmg]i?b\b|char(?:acter)?s?\b|字符|字节|文字|글자|zeichen|caract"
          r"|символ)"), "The context window is exceeded, it has 950 characters"),
        ("things", (r"[)\]]? ?-?(?:images?|documents?|tools?|files?|pages?"
          r"|messages?\b(?! (?:tokens?|limit|length))|times?\b|attempts?\b|requests?\b|retries|draft|% "
          r"|percent|parameters?\b|gpus?\b)"), "The context window is exceeded, it has 950 messages"),
    ),
)
"""What gives a number its role."""
# fmt: on
