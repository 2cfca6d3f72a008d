"""The table, second part: what looks like a token limit and is another thing.

Each row has one message that is taken for a token limit without it.
"""

from __future__ import annotations

from typing import Final

from compacter.overflow.table import Row

# fmt: off
VETOES: Final[tuple[Row, ...]] = (
    # The room asked for the answer.
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
    # A manner of speaking; it is not read at all.
    Row("idiom: invalid input", (r"\b(?:input|request|prompt|schema) validation\b|\bvalidation (?:error|exception)\b"
        r"|\b(?:invalid|malformed|bad) (?:input|prompt|messages?|request)\b(?! is| was)|\binput should\b"),
     "Input validation: the value is larger than the limit, model 7"),
    Row("idiom: other contexts", (r"\bcontext (?:deadline|cancell?ed|manager)\b|\b(?:ssl|tls|execution"
        r"|browser) context\b|\bprompt cach\w{1,4}\b|\bcontext cach\w{1,4}\b|\bcached? content\b"),
     "ssl context: record too long"),
    # Another kind of error, with a cure of its own.
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
        r"|the) (?:\w{1,8} )?(?:account|plan|tier|key|day|project))|your plan|upgrade (?:your|to continue))\b"),
     "Monthly token limit exceeded"),
    Row("other error: access token", (r"\b(?:tokens? (?:is |has |have |was )?(?:been )?(?:expired|invalid|revoked"
        r"|malformed|missing)|(?:expired|invalid|revoked|missing|bad) (?:\w{1,14} )?tokens?|(?:access|refresh|bearer"
        r"|security|session|auth\w{0,12}|id|api|csrf|jwt|bot|verification|reset)[-_ ]tokens?|jwt|tokens? (?:registered"
        r"|issued)|token (?:validation|verification|lifetime)|unexpected token|maximum (?:lifetime|age)|(?:provided"
        r"|supplied|given) token|api[-_ ]?keys?|unauthori[sz]ed|unauthenticated|permission denied|forbidden)\b"),
     "Invalid token: the input exceeds the maximum of the model"),
    Row("other error: other languages", (r"\b(?:pro (?:minute|tag|stunde)|par (?:minute|jour|heure)|solde|por (?:minuto"
        r"|dia|hora)|cuota|cota|saldo|al (?:minuto|giorno)|credito|expire)\b|\bквот|频繁|限流|限速|每分钟|每秒|每天"
        r"|速率|并发|稍后再?试|[rt]pm ?超|配额|额度|余额|欠费|账户|套餐|毎分|分あたり|レート制限|しばらくして|頻繁"
        r"|クォータ|残高|利用枠|분당|속도 제한|잠시 후|요청이 너무 많|할당량|잔액|크레딧|令牌(?:已)?(?:过期|失效|无效)"
        r"|鉴权|认证失败|有効期限|만료|유효하지|ratenlimit|zu viele anfragen|kontingent|guthaben|limite de (?:debit"
        r"|taux)|trop de requetes|limite de (?:tasa|velocidad)|demasiadas (?:solicitudes|peticiones)|limite de taxa"
        r"|muitas (?:solicitacoes|requisicoes)|limite di frequenza|troppe richieste|в (?:минуту|час|день|сутки)"
        r"|слишком много запросов|лимит запросов|баланс|срок действия токена|недействител"), "每分钟 token 超过上限"),
    # The sentence is about something else.
    Row("other thing: string too long", (r"\b(?:string|array) with (?:a )?(?:max\w{0,4} )?length\b|\b(?:(?:string"
        r"|array)[_ ](?:is )?(?:too[_ ]long|above[_ ]max)(?! for (?:the |this )?(?:context|model)))"),
     "String too long in the messages"),
    Row("other thing: field", (r"\b(?:description|names?|title|field|label|metadata|user_?name|password|filename"
        r"|ur[il]s?|headers?|cookies?|identifier|property|schema|enum|pattern|path|suffix|sql|query string|certificate"
        r"|prompt_cache_key|index|chunk|voice|key)['\"`)\]]{0,3} (?:\(.{0,30}\) ?)?(?:\w{1,10} ){0,2}(?:too (?:long"
        r"|large)|exceed\w{0,3}|longer|must|at most|should)\b"), "The input description is too long"),
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
        r"|minimum|must be (?:positive|at least|divisible)|(?:num_ctx|n_ctx|n_batch|ctx-size|top_k|offset) (?:must"
        r"|should|cannot|exceeds)|n_ctx_train|n_ctx_per_seq|context[ _](?:window|length|size) (?:must|should))\b"),
     "The minimum of messages exceeds what the model has"),
    Row("other thing: engine start", (r"\b(?:out of memory|when initiali[sz]ing|(?:unable|failed) to (?:load|allocate)"
        r"|[gm]i?b of|rope|(?:could not|failed to) start|max_model_len (?:\S{1,12} )?is (?:larger|greater)"
        r"|trained (?:with|on))\b|\b(?:gpu_memory|derived max|kv cache (?:\(|is (?!full)|memory"
        r"|of )(?!.{0,30}max_kv_size)|in (?:the )?kv cache|max_num_batched|memory\b(?! (?:slot|window))"
        r"|training (?:context|example|sample|file|data)|cache (?:entry|limit)|session file|fine-?tun)"),
     "The model's max seq len is larger than what is stored in KV cache"),
    Row("other thing: server", (r"\b(?:overloaded|at capacity|queue|(?:took|taking|takes?|waited|waiting"
        r"|ran) (?:for )?(?:\w{1,8} )?(?:too long|longer)|too long to (?:respond|process|complete|finish|load|generate"
        r"|answer|run|start)|e?time(?:d)?[ -]?out|certificate|segmentation fault|unknown flag)\b|\b(?:(?:try"
        r"|retry)(?:ing)? (?:again )?(?:later|after|in \d)|connection (?:refused|reset|error|closed))"),
     "Input tokens exceed the capacity, try again later"),
    Row("other thing: denied", (r"\b(?:(?:does|do|did|has|have|is|are|was|were) ?(?:not"
        r"|n't) (?:\w{1,10} )?(?:exceed\w{0,3}|too (?:long|large)|longer|larger)|approaching|but acceptable|to avoid"
        r"|(?<!try )(?<!by )(?<!consider )truncating|(?:automatically|will be|being|was|been|is|are"
        r"|successfully) (?:truncated|compacted|shortened|trimmed))\b"
        r"|\bwithin (?:the |its )?(?:limits?|context)"), "The prompt does not exceed the context window"),
    Row("other thing: not available", (r"\b(?:not (?:yet )?available|deprecated|does not exist|billed at"
        r"|content[_ -](?:filter\w{0,4}|policy|management)|flagged|moderat\w{2,3})\b"),
     "Prompts of more than 200000 tokens are not available, over the limit"),
    Row("other thing: limit of another thing", (r"\b(?:(?:image|speech|voice|audio) (?:model|generation|synthesis)"
        r"|(?:to|for) embed(?:ding)?|embeddings? (?:request|api|error)|(?:generate|create|get)[ _]embeddings?"
        r"|(?:in|per|submitted) batch|enqueued|clip|per (?:chunk|item|row|document)|(?:search|vector) index|(?:prompt"
        r"|context|conversation|history|chat|message|token)s?[ _](?:depth|nesting|retention|(?<!chat )template|id)"
        r"|(?:recursion|iteration|call stack|turn|nesting|stack) (?:limit|size|depth)s?|concurrent)\b"),
     "maximum context depth exceeded in parser"),
    Row("other thing: east Asian", (r"(?:名称|昵称|描述|标题|字段|用户名|密码|文件名|参数名)(?:长度|输入)?(?:过长|太长"
        r"|超过|超出|不能超过)"), "提示词的名称过长"),
    # Something else is counted, unless tokens or a context are named too.
    Row("other unit: things", (r"\b(?:too many|at most|up to|more than|limit of|takes|has|contains|(?:number|count"
        r"|amount) of|max(?:imum)?(?: number)?(?: of)?) (?:\d{1,6} )?(?:\w{1,14} ){0,2}(?:image|document|tool|function"
        r"|file|attachment|item|element|request|choice|stop sequence|message|turn|step|block|page|video|label|propertie"
        r"|input|text|row|key|section|breakpoint|word|device)s\b(?! tokens?)"),
     "There are too many tools: the messages are too large for the model"),
    Row("other unit: media", (r"\b(?:batch|embedding)\b|\b(?:images?|audio|video|speech|voice|file|attachment|pdf"
        r"|document)s?\b.{0,40}(?:\btoo (?:large|long|big)|\bexceed)"), "The batch of inputs is too large"),
    Row("other unit: characters", (r"\b(?:characters?|chars|words|bytes?|[kmg]i?b|megabytes?|kilobytes?|pixels?|px"
        r"|octets|seconds|minutes|hours|days|pages)\b|\d[kmg]i?b\b"),
     "The input exceeds the maximum of the model: 5000 characters"),
    Row("other unit: other languages", (r"\b(?:zeichen|bild(?:er)?|caracteres|fichiers?|arquivos?|caratter\w)\b"
        r"|\b(?:datei|файл)|(?:图片|图像|文件|工具|函数|轮次)(?:数量|个数|数|太多|过多|过大)|\d ?(?:张|个文件|轮)|字符"
        r"|个字|字节|\d ?枚|画像|ファイル|文字|이미지|파일|글자|\d ?자\b|바이트|символ\w{0,3}"), "输入图片过大"),
)
# fmt: on
