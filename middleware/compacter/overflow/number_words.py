"""The table of the detector, continued: words before or after a number that determine its role.

"no count" stands for a number that does not count tokens. In the samples the limit is 8192 and the
request 9000 tokens; without its row the numbers of a sample are read wrongly.
"""

from __future__ import annotations

from typing import Final

from compacter.overflow.table import Row

NUMBER_WORDS: Final[tuple[Row, ...]] = (
    Row(
        "limit before: maximum",
        r"\bmax(?:imum|imal\w{0,2}|\.)?(?: (?:allowed|supported|permitted|number|total|input|prompt"
        r"|context|sequence|tokens?|length|size|window|limit|reached|count|combined|capacity"
        r"|configured|model|request|of|is|was|for|the|this|your|has|which|that|to)){0,9}"
        r"|_max_(?!(?:new_|completion_|output_)?tokens)\w{1,24}",
        "The prompt is too long, maximum 8192",
    ),
    Row(
        "limit before: limit",
        r"\blimit(?:s|ed|e)?\b(?: (?:of|is|was|for|the|this|your|our|a|model|has|have|which|that"
        r"|to|prompt|input|messages)){0,4}|\btoken_limit\b|\b(?:n_|num_)?ctx\b",
        "The prompt is too long, limit 8192",
    ),
    Row(
        "limit before: context window",
        r"\bcontext (?:is|(?:can )?holds?|of)\b|\bcontext[ _-](?:window|length|size|limit|len"
        r"|capacity"
        r"|budget)(?: holds| limit)?"
        r"(?: (?:of|is|was|for|the|this|your|our|a|model|has|have|which|that|to)){0,4}",
        "Prompt too long; context length 8192",
    ),
    Row(
        "limit before: window of a model",
        r"\b(?:model'?s?|loaded|available|supported) (?:context|window|(?:\w{5} )?sequence length)"
        r"\b(?![ _-](?:window|length|size|limit|len|cap|bud))|\bblock size\b",
        "Prompt too long; loaded context 8192",
    ),
    Row(
        "limit before: at most",
        r"\bat most\b|\bup to\b|<=?|\[[01], ?|\bbetween \d{1,3} and\b|\btruncate to\b|(?<=, )have\b"
        r"|\b(?:under|below|within)\b|\b(?:less|fewer|shorter) than(?: or equal to)?"
        r"(?: max_?tokens)?"
        r"|\bfit (?:in|into|within)\b(?: (?:a|the))?(?: context)?(?: (?:window|length))?(?: of)?",
        "The prompt is too long, at most 8192",
    ),
    Row(
        "limit before: takes",
        r"\b(?:allow(?:s|ed)?|supports?|accepts?|stops? at|loaded with|takes?(?! up)|handles?"
        r"|process(?:es)?(?!:)|available|configured|capacity|threshold|only|expected|reads?"
        r"|window)\b"
        r"(?: (?:at most|up to|only))?",
        "The prompt is too long, the model takes 8192",
    ),
    Row(
        "limit before: more than",
        r"\b(?:longer|larger|greater|more|bigger|higher) than\b|\bbeyond\b|\babove\b|\bover\b"
        r"|[^-]>=?|\bexce{1,2}d(?:s|ing)?\b|\bexce{1,2}ded\b(?! ?[:,;(])"
        r"|\bsurpass(?:es|ing)?\b",
        "The prompt is longer than 8192 tokens",
    ),
    Row(
        "limit before: East Asian",
        r"(?:最大|上限|限制|制限|最长|最多|不能超过|不得超过|不超过|超过|超出|小于|窗口|容量)"
        r"(?:输入|上下文|允许|支持|入力|コンテキスト|トークン)?的?(?:长度|限制|上限|了|为|長|数|サイズ)?"
        r"(?:である|の|値)?|(?:최대|한도|제한)(?: ?(?:컨텍스트|입력|토큰))?(?: ?(?:길이|수|크기))?",
        "提示词过长，不超过 8192",
    ),
    Row(
        "limit before: German",
        r"\bgrenze\b(?: von)?|\bhochst\w{0,10}|kontextfenster|uberschreitet|ubersteigt"
        r"|\b(?:langer|mehr) als\b|\berlaubt\b(?: aber| sind)?",
        "Die Unterhaltung ist zu lang: Höchstwert 8192",
    ),
    Row(
        "limit before: French",
        r"\bfenetre de contexte(?: d\w{1,2} mod\w{1,3})?(?= ?\(| de)|\bdepasse(?: la limite)?"
        r"|\baccepten?t?\b(?: que)?|\bmaximale?\b(?: (?:de|du|contexte|est)){0,4}",
        "La conversation est trop longue : le modèle accepte 8192",
    ),
    Row(
        "limit before: Spanish and Portuguese",
        r"\b(?:ventana|janela) de contexto(?: d\w{1,2} mod\w{1,3})?(?= ?\(| de \d)|\badmite\b"
        r"|\bexcede|\bultrapassa|\bdisponib\w{2,3}\b"
        r"|\bmaxim[ao]\b(?: (?:de|contexto|este|modelo|es|permitid[ao])){0,6}",
        "Ventana de contexto excedida: el modelo admite 8192",
    ),
    Row(
        "limit before: Italian",
        r"\bfinestra di contesto(?: d\w{1,2} mod\w{1,3})?(?= ?\(| de \d)|\bsupera|\beccede"
        r"|\bmassim\w(?: (?:di|consentit\w))?",
        "La conversazione è troppo lunga: massimo 8192",
    ),
    Row(
        "limit before: Russian",
        r"контекст модели|лимит\w{0,2}|предел\w{0,2}|превыша\w{1,3}"
        r"|максим\w{0,10}(?: (?:длин\w{1,3}|контекста|числ\w)){0,2}",
        "Диалог слишком длинный, предел 8192",
    ),
    Row(
        "limit after: maximum",
        r"(?:is |was |are |as )?(?:the |model'?s? |our |its )?(?:model |token |input |prompt "
        r"|total )?(?:(?:max(?:imum)?|limit)\b(?! ?[=:(] ?\d)|cap\b|ceiling\b"
        r"|context\b(?: window| length| size| limit)?(?! \d)|window\b|allowed\b|supported\b"
        r"|available\b)",
        "The prompt is too long, 8192 cap",
    ),
    Row(
        "limit after: East Asian",
        r"の?(?:上限|制限|最大)|限制|を(?:超|上回|オーバー)|に対し|(?:을|를) (?:초과|넘)"
        r"|(?:의 )?(?:한도|제한)",
        "提示词过长，8192 限制",
    ),
    Row(
        "limit after: European",
        r"fur frage und|pour (?:la )?question et|para pregunta y|para pergunta e|per domanda e"
        r"|hochst|maximum|maximal"
        r"|erlaubt|autorise|au maximum|permitid|maximo|consentit|massimo"
        r"|максим|лимит|допустим",
        "La conversazione è troppo lunga: 8192 consentiti",
    ),
    Row(
        "sent before: requested",
        r"\brequest(?:ed|s|ing)?\b(?:[_ ]tokens?| a total| about| up to| count| size"
        r"| length){0,2}|\b(?:contain|total|hold|use|come|amount|add|sum|need|require)(?:s|d"
        r"|ed|ing)?\b(?: (?:up )?(?:of|tokens?|to))?(?: over| more than)?"
        r"|\b(?:ha(?:s|d|ve)|result(?:ed|s) in)\b(?: over| more than)?"
        r"|\b(?:will take|takes up)\b|\b(?:got|gave|given|received|supplied|provided|sen[dt]"
        r"|submitted|asked for|passed)\b",
        "The context window is exceeded, requested 9000",
    ),
    Row(
        "sent before: current",
        r"\b(?:current|actual|used|estimated|measured)(?:ly)?(?: (?:length|size|tokens?|usage"
        r"|count))?|\btoo (?:long|large|many|big)\b(?: tokens)?|\bkeep the first\b"
        r"|\bcount(?: of)?\b|\b(?:was|were|value)\b|\b(?:n|num|total)_tokens\b"
        r"|\btoken_count\b|\bsequence(?: length)?(?: is| of)?\b",
        "The context window is exceeded, currently 9000",
    ),
    Row(
        "sent before: Chinese",
        r"(?:请求|当前|实际|本次|共|总计|达到|传入|发送|您的)[了的]?总?(?:token数?|长度|数量|为|是)?"
        r"|[过太超][长大]|总长度|总数|(?<!上下文)长度|已使?用",
        "超出上下文窗口，当前 9000",
    ),
    Row(
        "sent before: Japanese and Korean",
        r"(?:リクエスト|現在|合計|要求|実際)[はの]?(?:トークン数)?|トークン数|に対し[て、]?"
        r"|(?:요청|현재|총|전송|실제)(?:된|한)?(?: ?토큰)?(?: ?수)?|토큰 수",
        "コンテキスト長を超えています。現在 9000",
    ),
    Row(
        "sent before: German",
        r"\b(?:hat|umfasst|sind)\b|\bange(?:fordert|fragt)\w{0,2}|\benthalt|\baktuell\w{0,2}",
        "Das Kontextfenster ist voll, aktuell 9000",
    ),
    Row(
        "sent before: French",
        r"\bdemande\w{0,2}|\bcontient|\bcompt\w{1,2}\b|\bcomporte\b",
        "Fenêtre de contexte dépassée : contient 9000",
    ),
    Row(
        "sent before: Spanish and Portuguese",
        r"\bsolicit\w{1,5}|\bcontiene\b|\btiene\b|\benviad\w{1,2}\b|\bcontem\b|\btem\b|\bpossui\b"
        r"|\brequerid\w{1,2}\b",
        "Ventana de contexto excedida: contiene 9000",
    ),
    Row(
        "sent before: Italian",
        r"\brichiest\w{1,2}|\bha\b|\bstimat\w\b",
        "Finestra di contesto superata: richiesti 9000",
    ),
    Row(
        "sent before: Russian",
        r"запрошен\w{0,2}|содерж\w{1,3}|составля\w{1,3}|получен\w{0,2}",
        "Контекстное окно переполнено: запрошено 9000",
    ),
    Row(
        "sent after: exceeds",
        r"(?:,? ?(?:which |that |and )?(?:is |are |was |were )?(?:>=?"
        r"|exce{1,2}d(?!ed(?: by| ?[:,;.(]|$))|surpass(?!ed)|too (?:long|large|many)|over\b"
        r"|above\b|(?:longer|larger|greater|more|bigger) than))|cannot |vs\b|/ ?\d"
        r"|(?:for|out of|of|against|versus) (?:a |an |the )?(?:max|limit|\d)",
        "Context window: 9000 exceeds it",
    ),
    Row(
        "sent after: were sent",
        r"(?:were |was |is )?(?:found|given|supplied|provided|requested|received|submitted"
        r"|sent|used|passed|in use)\b|long\b",
        "The context window is exceeded: 9000 were sent",
    ),
    Row(
        "sent after: East Asian",
        r"超过|超出|大于|が(?:上限|最大|制限|コンテキスト)|が(?:入力|リクエスト|要求|送信)",
        "上下文溢出，9000 超出",
    ),
    Row(
        "sent after: European",
        r"uberschr(?!itten)|uberst|ange(?:fordert|fragt)|von (?:einem |maximal)|depass"
        r"|demande|(?:pour|sur) (?:un )?max|exced|super[ao]|solicitad|ultrapass|eccede|richiest"
        r"|превыша|больше|запрош|при максимуме",
        "Fenêtre de contexte dépassée : 9000 demandés",
    ),
    Row(
        "input before: prompt",
        r"\b(?:n_)?(?:prompt|input|messages?|context|text)[_ ]?(?:tokens?|length|len"
        r"|size)?(?: (?:length|count|has|is|of))?\b(?: at least)?",
        "It exceeds the context window: prompt 9000",
    ),
    Row(
        "input before: East Asian",
        r"(?:输入|提示词?|消息)的?(?:长度|tokens?)?|入力(?:トークン)?(?:数|長)?|プロンプト長?"
        r"|입력(?: ?토큰)?(?: ?수)?",
        "超出最大上下文，输入 9000",
    ),
    Row(
        "input after: in the messages",
        r"(?:(?:in|for|from|of|as) (?:the |your )?(?:text )?)?`?'?(?:requests?\b|messages?\b"
        r"|prompts?\b|inputs?\b|conversation|text\b)",
        "The context window is exceeded, as there are 9000 in the prompt",
    ),
    Row(
        "output before: max_tokens",
        r"\bmax(?:imum)?_?tokens\b|\bmax[_ ]?(?:new|completion|output)[_ ]?tokens\b"
        r"|\bcompletion\b|\boutput(?: tokens?)?\b|\breserved\b|\bgeneration\b",
        "The context window of 8192 is exceeded: messages 8000, max_tokens 1000",
    ),
    Row(
        "output after: in the completion",
        r"(?:reserved )?(?:(?:in|for|from|as|of) (?:the "
        r"|your )?(?:requested )?)?`?'?(?:completion|output|response|generation|reply|answer"
        r"|max_\w{0,20}tokens)",
        "The context window of 8192 is exceeded: messages 8000, 1000 for the completion",
    ),
    Row(
        "no count before: status",
        r"\b(?:status(?:[_ ]?code)?|error(?:[_ ]?code)?|err(?:no|code)?|code|https?|line|port"
        r"|attempts?|retr(?:y|ied)|version|v|ref|id|pid|step|index|trace|after|temperature"
        r"|seed|错误码|エラー|오류)[\"']?(?: ?[:=#] ?| \(?|\()[\"'#-]?$",
        "The context window is exceeded, error 8193",
    ),
    Row(
        "no count after: seconds",
        r"[)\]]? ?-?(?:seconds?|secs?|s\b|ms\b|min(?:ute)?s?\b|hours?|days?|秒|分钟|секунд"
        r"|sekunden|segundos)|[)\]]? ?-?(?:bytes?|[kmg]i?b\b|char(?:acter)?s?\b|字符"
        r"|字节|文字|글자|words?\b|parole|pala[bv]ras|worter|mots\b|слов|zeichen|caract|символ)"
        r"|[)\]]? ?-?(?:images?|documents?|tools?|files?(?! \")|pages?|messages?\b"
        r"(?! (?:tokens?|limit|length))|times?\b|attempts?\b"
        r"|requests?\b|retries|bad request|-? ?\{|draft|% |percent|parameters?\b|gpus?\b)",
        "The context window is exceeded, it took 950 ms",
    ),
    Row(
        "no count after: overshoot",
        r" ?tokens? (?:over|too many|too long|longer|more than|above|beyond|past)\b",
        "The context window is exceeded: it has 808 tokens too many",
    ),
)
