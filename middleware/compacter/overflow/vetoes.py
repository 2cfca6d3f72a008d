"""The table, second part: what looks like a token limit and is another thing.

Each row has one message that is taken for a token limit without it.
"""

from __future__ import annotations

from typing import Final

from compacter.overflow.table import Meaning, Row, rows

# fmt: off
VETOES: Final[tuple[Row, ...]] = (
    *rows(Meaning.OUTPUT,
        ("max_tokens", (r"\bmax_?tokens?(?:_to_sample)?\b"
          r"|\bmax[_ ]?(?:new|completion|output|generated)[_ ]?tokens?\b"),
         "max_tokens exceeds the token limit"),
        ("num_predict", r"\bn(?:um)?_predict\b|\bbudget_tokens\b|\bthinking[_. ]budget\b",
         "thinking.budget_tokens must be less than 8192 tokens, the model limit was exceeded"),
        ("output tokens", (r"\b(?:output|completion|generat(?:ed|ion)|response|reasoning|thinking|new"
          r"|answer)[ _](?:tokens?|length|limit)\b"), "The completion tokens exceed the limit of the model"),
        ("maximum output", r"\bmax(?:imum|\.)? (?:output|completion|generation|response|new)\b",
         "The maximum completion exceeds the token limit"),
        ("maximum tokens requested", (r"\bmax(?:imum)? tokens? (?:that )?(?:you |were |was )?(?:requested"
          r"|value|param|setting|must|should)"),
         "The maximum tokens you requested exceeds the model limit of 4096"),
    ),
    *rows(Meaning.SUM,
        ("total", r"\btotal\b|\bcombined\b|\bsum\b|\bin your\b|\bwould exceed\b|\bplus\b",
         "Range of total length should be at most 8192"),
    ),
    *rows(Meaning.IDIOM,
        ("validation", r"\b(?:input|request|prompt|schema) validation\b|\bvalidation (?:error|exception)\b",
         "Input validation: the value is larger than the limit, model 7"),
        ("invalid input", r"\b(?:invalid|malformed|bad) (?:input|prompt|messages?|request)\b(?! is| was)",
         "Bad input: the value is too large for the model"),
        ("context", r"\bcontext (?:deadline|cancell?ed|manager)\b|\b(?:ssl|tls|execution|browser) context\b",
         "ssl context: record too long"),
        ("input should", r"\binput should\b",
         "thinking.budget_tokens: Input should be greater than or equal to 1024"),
        ("prompt caching", r"\bprompt cach\w{1,4}\b|\bcontext cach\w{1,4}\b|\bcached? content\b",
         "Prompt caching: the block is too large"),
    ),
    *rows(Meaning.OTHER_ERROR,
        ("rate limit", r"\brate[-_ ]?limit|\blimit rate\b|\b(?:[rt]p[mds]|itpm|otpm)\b",
         "Token rate limit exceeded"),
        ("per minute", (r"(?:\b|_)per[ _-](?:min(?:ute)?|sec(?:ond)?|hour|day|week|month)s?\b"
          r"|/ ?(?:min|minute|hour|day)\b"), "Input tokens exceed the limit per minute"),
        ("in the last minute", (r"\b(?:in|for|within) the (?:last|past|current) (?:\d|min|hour|day|sec)"
          r"|\brecently\b|\btokens (?:in|within|every) \d{1,4} ?[smh]|\bburst\b"),
         "Input tokens in the last minute exceed the limit"),
        ("please wait", r"\btoo many requests\b|\bthrottl\w{1,6}|\bplease wait\b|\bslow down\b|\bback off\b",
         "Too many tokens in the prompts, slow down"),
        ("usage limit", r"\b(?:usage|concurrency|spend\w{0,3}|concurrent)[- _]?(?:limits?|requests|tokens)\b",
         "Token usage limit exceeded"),
        ("quota", r"\bquotas?\b|\bresource (?:has been )?exhausted\b", "Prompt tokens exceed the quota"),
        ("credits", (r"\bcredits?\b|\bbilling\b|\bbalance\b|\bafford\b|\bpayment\b|\bprepaid\b|\bwallet\b"
          r"|\bspend\b|\bcosts?\b|\$ ?\d"), "The prompt tokens exceed your credits"),
        ("monthly limit", (r"\b(?:daily|weekly|monthly|hourly|free[- ]tier|trial|account|organi[sz]ation"
          r"|workspace|subscription|plan|tier|team|user|key|project)(?:'s)? (?:\w{1,8} )?(?:tokens?|limit"
          r"|allowance|allotment|cap|budget)\b"), "Monthly token limit exceeded"),
        ("limit of a plan", (r"\b(?:today|this (?:week|month|minute|hour)"
          r"|for (?:your|the) (?:\w{1,8} )?(?:account|plan|tier|key|day|project))\b|\byour plan\b"
          r"|\bupgrade (?:your|to continue)\b"), "Token limit exceeded for this month"),
        ("allowance", (r"\bremaining tokens\b|\btokens (?:remaining|left)\b"
          r"|\btoken (?:allowance|allotment|balance|budget)\b"), "The prompt exceeds the remaining tokens"),
        ("zh rate", r"频繁|限流|限速|每分钟|每秒|每天|速率|并发|稍后再?试|[rt]pm ?超",
         "每分钟 token 超过上限"),
        ("zh quota", r"配额|额度|余额|欠费|账户|套餐", "token 额度超过上限"),
        ("ja rate", r"毎分|分あたり|レート制限|しばらくして|頻繁", "1分あたりのトークン数が上限を超えました"),
        ("ja quota", r"クォータ|残高|利用枠", "トークンのクォータの上限を超えました"),
        ("ko rate", r"분당|속도 제한|잠시 후|요청이 너무 많", "분당 토큰 한도를 초과했습니다"),
        ("ko quota", r"할당량|잔액|크레딧", "토큰 할당량 한도를 초과했습니다"),
        ("de", r"\bpro (?:minute|tag|stunde)\b|ratenlimit|zu viele anfragen|kontingent|guthaben",
         "Die Tokens überschreiten das Limit pro Minute"),
        ("fr", r"\bpar (?:minute|jour|heure)\b|limite de (?:debit|taux)|trop de requetes|\bsolde\b",
         "La limite de jetons par minute est dépassée"),
        ("es", (r"\bpor (?:minuto|dia|hora)\b|limite de (?:tasa|velocidad)"
          r"|demasiadas (?:solicitudes|peticiones)|\bcuota\b"), "Los tokens superan el límite por minuto"),
        ("pt", r"limite de taxa|muitas (?:solicitacoes|requisicoes)|\bcota\b|\bsaldo\b",
         "O prompt ultrapassa o limite de tokens da cota"),
        ("it", r"\bal (?:minuto|giorno)\b|limite di frequenza|troppe richieste|\bcredito\b",
         "I token superano il limite al minuto"),
        ("ru", r"в (?:минуту|час|день|сутки)|слишком много запросов|лимит запросов|\bквот|баланс",
         "Превышен лимит токенов в минуту"),
        ("expired token", (r"\btokens? (?:is |has |have |was )?(?:been )?(?:expired|invalid|revoked"
          r"|malformed|missing)\b|\b(?:expired|invalid|revoked|missing|bad) (?:\w{1,14} )?tokens?\b"),
         "Invalid token: the input exceeds the maximum of the model"),
        ("access token", (r"\b(?:access|refresh|bearer|security|session|auth\w{0,12}|id|api|csrf|jwt|bot"
          r"|verification|reset)[-_ ]tokens?\b|\bjwt\b|\btokens? (?:registered|issued)\b"
          r"|\btoken (?:validation|verification|lifetime)\b"
          r"|\bunexpected token\b|\bmaximum (?:lifetime|age)\b|\b(?:provided|supplied|given) token\b"),
         "The refresh token exceeds the maximum length"),
        ("api key", (r"\bapi[-_ ]?keys?\b|\bunauthori[sz]ed\b|\bunauthenticated\b|\bpermission denied\b"
          r"|\bforbidden\b"), "Prompt too large? Unauthorized"),
        ("zh auth", r"令牌(?:已)?(?:过期|失效|无效)|鉴权|认证失败", "鉴权 token 超过最大长度"),
        ("ja auth", r"有効期限", "トークンの有効期限の上限を超えています"),
        ("ko auth", r"만료|유효하지", "토큰 만료 한도를 초과했습니다"),
        ("fr auth", r"\bexpire\b", "Le jeton a expiré: limite dépassée"),
        ("ru auth", r"срок действия токена|недействител", "Превышен срок действия токена: предел"),
    ),
    *rows(Meaning.OTHER_THING,
        ("later", (r"\b(?:try|retry)(?:ing)? (?:again )?(?:later|after|in \d)|\boverloaded\b"
          r"|\bat capacity\b|\bqueue\b"), "Input tokens exceed the capacity, try again later"),
        ("string too long", (r"\bstring[_ ](?:is )?(?:too[_ ]long|above[_ ]max)"
          r"|\b(?:string|array) with (?:a )?(?:max\w{0,4} )?length\b"), "String too long in the messages"),
        ("array too long", r"\barray[_ ](?:is )?(?:too[_ ]long|above[_ ]max)", "Array too long in messages"),
        ("field", (r"\b(?:description|names?|title|field|label|metadata|user_?name|password|filename"
          r"|ur[il]s?|headers?|cookies?|identifier|property|schema|enum|pattern|path|suffix|sql"
          r"|query string|certificate|prompt_cache_key|index|chunk|voice"
          r"|key)['\"`)\]]{0,3} (?:\(.{0,30}\) ?)?(?:\w{1,10} ){0,2}(?:too (?:long|large)|exceed\w{0,3}"
          r"|longer|must|at most|should)\b"), "The input description is too long"),
        ("tool definition", (r"\btools?[\[.]\d|\bfunctions?[\[.]\d"
          r"|\btool[ _](?:name|description|schema|argument)s?\b|\binput_schema\b"),
         "The tool schema in the input is too large"),
        ("other tokens", (r"\b(?:stop|banned|special|bias|suppress\w{0,3})[ _]tokens?\b|\bbad_words\b"
          r"|\blogit_bias\b|\bstop sequences?\b"), "Too many stop tokens in the request"),
        ("tool result", (r"\b(?:tool|mcp|file|page|search|command|plugin|server)\b.{0,60}\b(?:response"
          r"|result|output|contents?)s?\b|\bfile contents? \("
          r"|\b(?:file|response|result"
          r"|diff) (?:content )?\(?(?:of )?\d[\d,.]{0,10} ?(?:tokens?)?\)? (?:exceed|is too)|\boutput of\b"
          r"|\b(?:mcp|tool|command|plugin)\b.{0,40}\breturned\b"),
         "File content (9000 tokens) exceeds maximum allowed tokens"),
        ("file is", r"\bread tool\b|\bfile is \d|\btool[ _]calls?\b",
         "Read tool: file is 9000 tokens, exceeds the maximum allowed 8192"),
        ("image model", r"\b(?:image|speech|voice|audio) (?:model|generation|synthesis)\b|\bclip\b",
         "Prompt too long for this image model (max 77 tokens)"),
        ("output cut", (r"\blength limit was reached\b"
          r"|\b(?:output|response|completion|reply|answer|generation)\b.{0,60}\b(?:truncated|cut off"
          r"|incomplete|stopped|ended)\b|\bcould not finish\b|\bwhile generating\b|\bunterminated\b"),
         "The model's answer to the messages was cut off: limit reached"),
        ("output exceeds", (r"\b(?:output|response|reply|answer|embedding)s? (?:\w{1,6} )?(?:exceed\w{0,3}"
          r"|too (?:long|large))\b"), "The reply exceeded the maximum tokens"),
        ("too small", r"\btoo (?:small|short|low|few)\b|\bminimum\b|\bmust be (?:positive|at least)\b",
         "The context window is too small for the history, it exceeds it"),
        ("engine start", (r"\bgpu_memory|\bout of memory\b|\bwhen initiali[sz]ing\b|\bderived max"
          r"|\bkv cache (?:\(|is |memory|of )|\bin (?:the )?kv cache"
          r"|\b(?:unable|failed) to (?:load|allocate)\b|\b[gm]i?b of\b|\brope\b|\bmax_num_batched"
          r"|\bmemory\b(?! slot)|\b(?:could not|failed to) start\b"
          r"|\bmax_model_len (?:\S{1,12} )?is (?:larger|greater)\b"),
         "The model's max seq len is larger than what is stored in KV cache"),
        ("training", r"\btraining (?:context|example|file|data)|\btrained (?:with|on)\b|\bfine-?tun",
         "A training example is too long: 9000 tokens, maximum 8192"),
        ("n_ctx parameter", (r"\b(?:num_ctx|n_ctx|n_batch|ctx-size|top_k|offset) (?:must|should|cannot"
          r"|exceeds)\b|\bn_ctx_train\b|\bn_ctx_per_seq\b"
          r"|\bcontext[ _](?:window|length|size) (?:must|should)\b"),
         "num_ctx must not be greater than 131072"),
        ("took too long", (r"\b(?:took|taking|takes?|waited|waiting|ran) (?:for )?(?:\w{1,8} )?too long\b"
          r"|\btoo long to (?:respond|process|complete|finish|load|generate|answer|run|start)\b"
          r"|\btime(?:d)?[ -]?out\b"), "The model took too long over the prompt"),
        ("denied", (r"\b(?:does|do|did|has|have|is|are|was|were) ?(?:not"
          r"|n't) (?:\w{1,10} )?(?:exceed\w{0,3}|too (?:long|large)|longer|larger)\b"
          r"|\bwithin (?:the |its )?(?:limits?|context)|\bapproaching\b|\bbut acceptable\b|\bto avoid\b"),
         "The prompt does not exceed the context window"),
        ("done", (r"\b(?:automatically|will be|being|was|been|is|are|successfully) (?:truncated|compacted"
          r"|shortened|trimmed)\b"), "The context was larger than the context window and has been truncated"),
        ("not available", r"\bnot (?:yet )?available\b|\bdeprecated\b|\bdoes not exist\b|\bbilled at\b",
         "Prompts of more than 200000 tokens are not available, over the limit"),
        ("policy", r"\bcontent[_ -](?:filter\w{0,4}|policy|management)\b|\bflagged\b|\bmoderat\w{2,3}\b",
         "The prompt was flagged: this input is too long to be checked"),
        ("network", (r"\bconnection (?:refused|reset|error|closed)|\bcertificate\b|\bsegmentation fault\b"
          r"|\bunknown flag\b"), "prompt too large? Connection refused"),
        ("chunk", r"\bper (?:chunk|item|row|document)\b|\b(?:search|vector) index\b",
         "The document is too large: 9000 tokens per chunk, maximum 8192"),
        ("zh field", (r"(?:名称|描述|标题|字段|用户名|密码|文件名|参数名)(?:长度)?(?:过长|太长|超过|超出"
          r"|不能超过)"), "提示词的名称过长"),
        ("limit of another thing", (r"\b(?:prompt|context|conversation|history|chat|message"
          r"|token)s?[ _](?:depth|nesting|retention|template|id)\b"
          r"|\b(?:recursion|iteration|call stack|turn|nesting|stack) (?:limit|size|depth)s?\b"
          r"|\bconcurrent\b"), "maximum context depth exceeded in parser"),
    ),
    *rows(Meaning.OTHER_UNIT,
        ("too many things", (r"\btoo many (?:\w{1,14} ){0,2}(?:image|document|tool|function|file|attachment"
          r"|item|element|request|choice|stop sequence|message|turn|step|block|page|video|label|propertie"
          r"|input|text|row|key|section|breakpoint|word|device)s\b(?! tokens?)"),
         "There are too many tools: the messages are too large for the model"),
        ("number of things", (r"\b(?:number|count|amount) of (?:image|document|tool|function|file"
          r"|attachment|item|element|request|choice|stop sequence|message|turn|step|block|page|video|label"
          r"|propertie|input|text|row|key|section|breakpoint|word|device)s\b(?! tokens?)"
          r"|\bmax(?:imum)? (?:number of |of )?(?:image|document|tool|function|file|attachment|item|element"
          r"|request|choice|stop sequence|message|turn|step|block|page|video|label|propertie|input|text|row"
          r"|key|section|breakpoint|word|device)s\b"),
         "The number of messages exceeds the maximum of the model"),
        ("at most n things", (r"\b(?:at most|up to|more than|limit of|maximum of|takes|has"
          r"|contains) \d{1,6} (?:\w{1,14} )?(?:image|document|tool|function|file|attachment|item|element"
          r"|request|choice|stop sequence|message|turn|step|block|page|video|label|propertie|input|text|row"
          r"|key|section|breakpoint|word|device)s\b(?! tokens?)"),
         "The prompt is too large: it contains 120 images"),
        ("batch", r"\bbatch\b|\bembedding\b", "The batch of inputs is too large"),
        ("media", (r"\b(?:images?|audio|video|speech|voice|file|attachment|pdf"
          r"|document)s?\b.{0,40}(?:\btoo (?:large|long|big)|\bexceed)"), "Image input too large"),
        ("characters", r"\b(?:characters?|chars)\b|\bwords\b",
         "The input exceeds the maximum of the model: 5000 characters"),
        ("bytes", r"\b(?:bytes?|[kmg]i?b|megabytes?|kilobytes?)\b|\d[kmg]i?b\b|\b(?:pixels?|px|octets)\b",
         "The message history exceeds the model: 9 MB"),
        ("time", r"\b(?:seconds|minutes|hours|days|pages)\b",
         "The input is too long for the model: 90 minutes"),
        ("zh things", (r"(?:图片|图像|文件|工具|函数|轮次)(?:数量|个数|数|太多|过多|过大)"
          r"|\d ?(?:张|个文件|轮)"), "输入图片过大"),
        ("zh characters", r"字符|个字|字节", "输入过长，最多 5000 个字符"),
        ("ja things", r"\d ?枚|画像|ファイル|文字", "入力ファイルが長すぎます"),
        ("ko things", r"이미지|파일|글자|바이트", "입력 파일이 너무 큽니다"),
        ("de things", r"\bzeichen\b|\bdatei|\bbild(?:er)?\b",
         "Die Eingabe ist zu lang: höchstens 5000 Zeichen"),
        ("fr things", r"\bcaracteres\b|\bfichiers?\b", "L'entrée est trop longue: 5000 caractères"),
        ("pt things", r"\barquivos?\b", "O arquivo de entrada é grande demais"),
        ("it things", r"\bcaratter\w\b", "Il prompt è troppo lungo: 5000 caratteri"),
        ("ru things", r"символ\w{0,3}|\bфайл", "Слишком длинный ввод: 5000 символов"),
    ),
)
"""What speaks against a token limit."""
# fmt: on
