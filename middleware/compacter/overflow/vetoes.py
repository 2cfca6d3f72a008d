"""The table, second part: what looks like a token limit and is another thing.

Each row has one message that is taken for a token limit without it.
"""

from __future__ import annotations

from typing import Final

from compacter.overflow.table import Row, rows

_THINGS: Final = (
    r"(?:image|document|tool|function|file|attachment|item|element|request|choice|stop sequence|message|turn|step|block"
    r"|page|video|label|propertie|input|text|row|key|section|breakpoint|word|device)s\b(?! tokens?)"
)

# fmt: off
VETOES: Final[tuple[Row, ...]] = (
    # The room asked for the answer.
    *rows("output",
        ("max_tokens", (r"\bmax_?tokens?(?:_to_sample)?\b|\bmax[_ ]?(?:new|completion|output"
            r"|generated)[_ ]?tokens?\b|\bn(?:um)?_predict\b|\bbudget_tokens\b|\bthinking[_. ]budget\b"
            r"|\bmax(?:imum)? tokens? (?:that )?(?:you |were |was )?(?:requested|value|param|setting|must|should)"),
         "max_tokens exceeds the token limit"),
        ("output tokens", (r"\b(?:output|completion|generat(?:ed|ion)|response|reasoning|thinking|new"
            r"|answer)[ _](?:tokens?|length|limit)\b|\bmax(?:imum|\.)? (?:output|completion|generation|response"
            r"|new)\b"), "The completion tokens exceed the limit of the model"),
    ),
    # Parts are counted together.
    *rows("sum",
        ("total", (r"\btotal\b|\bcombined\b|\bsum\b|\bin your\b|\bwould exceed\b|\bplus\b"),
         "Range of total length should be at most 8192"),
    ),
    # A manner of speaking; it is not read at all.
    *rows("idiom",
        ("invalid input", (r"\b(?:input|request|prompt|schema) validation\b|\bvalidation (?:error|exception)\b"
            r"|\b(?:invalid|malformed|bad) (?:input|prompt|messages?|request)\b(?! is| was)|\binput should\b"),
         "Input validation: the value is larger than the limit, model 7"),
        ("other contexts", (r"\bcontext (?:deadline|cancell?ed|manager)\b|\b(?:ssl|tls|execution|browser) context\b"
            r"|\bprompt cach\w{1,4}\b|\bcontext cach\w{1,4}\b|\bcached? content\b"), "ssl context: record too long"),
    ),
    # Another kind of error, with a cure of its own.
    *rows("other error",
        ("rate limit", (r"\brate[-_ ]?limit|\blimit rate\b|\b(?:[rt]p[mds]|itpm|otpm)\b"
            r"|(?:\b|_)per[ _-](?:min(?:ute)?|sec(?:ond)?|hour|day|week|month)s?\b|/ ?(?:min|minute|hour|day)\b"
            r"|\b(?:in|for|within) the (?:last|past|current) (?:\d|min|hour|day|sec)|\brecently\b"
            r"|\btokens (?:in|within|every) \d{1,4} ?[smh]|\bburst\b|\btoo many requests\b|\bthrottl\w{1,6}"
            r"|\bplease wait\b|\bslow down\b|\bback off\b|\b(?:usage|concurrency|spend\w{0,3}"
            r"|concurrent)[- _]?(?:limits?|requests|tokens)\b"), "Token rate limit exceeded"),
        ("quota", (r"\bquotas?\b|\bresource (?:has been )?exhausted\b|\bcredits?\b|\bbilling\b|\bbalance\b"
            r"|\bafford\b|\bpayment\b|\bprepaid\b|\bwallet\b|\bspend\b|\bcosts?\b|\$ ?\d|\bremaining tokens\b"
            r"|\btokens (?:remaining|left)\b|\btoken (?:allowance|allotment|balance|budget)\b"),
         "Prompt tokens exceed the quota"),
        ("limit of a plan", (r"\b(?:daily|weekly|monthly|hourly|free[- ]tier|trial|account|organi[sz]ation"
            r"|workspace|subscription|plan|tier|team|user|key|project)(?:'s)? (?:\w{1,8} )?(?:tokens?|limit"
            r"|allowance|allotment|cap|budget)\b|\b(?:today|this (?:week|month|minute|hour)|for (?:your"
            r"|the) (?:\w{1,8} )?(?:account|plan|tier|key|day|project))\b|\byour plan\b"
            r"|\bupgrade (?:your|to continue)\b"), "Monthly token limit exceeded"),
        ("access token", (r"\btokens? (?:is |has |have |was )?(?:been )?(?:expired|invalid|revoked|malformed"
            r"|missing)\b|\b(?:expired|invalid|revoked|missing|bad) (?:\w{1,14} )?tokens?\b"
            r"|\b(?:access|refresh|bearer|security|session|auth\w{0,12}|id|api|csrf|jwt|bot|verification"
            r"|reset)[-_ ]tokens?\b|\bjwt\b|\btokens? (?:registered|issued)\b|\btoken (?:validation|verification"
            r"|lifetime)\b|\bunexpected token\b|\bmaximum (?:lifetime|age)\b|\b(?:provided|supplied|given) token\b"
            r"|\bapi[-_ ]?keys?\b|\bunauthori[sz]ed\b|\bunauthenticated\b|\bpermission denied\b|\bforbidden\b"),
         "Invalid token: the input exceeds the maximum of the model"),
        ("east Asian", (r"频繁|限流|限速|每分钟|每秒|每天|速率|并发|稍后再?试|[rt]pm ?超|配额|额度|余额|欠费|账户"
            r"|套餐|毎分|分あたり|レート制限|しばらくして|頻繁|クォータ|残高|利用枠|분당|속도 제한|잠시 후"
            r"|요청이 너무 많|할당량|잔액|크레딧|令牌(?:已)?(?:过期|失效|无效)|鉴权|认证失败|有効期限|만료|유효하지"),
         "每分钟 token 超过上限"),
        ("European", (r"\bpro (?:minute|tag|stunde)\b|ratenlimit|zu viele anfragen|kontingent|guthaben"
            r"|\bpar (?:minute|jour|heure)\b|limite de (?:debit|taux)|trop de requetes|\bsolde\b"
            r"|\bpor (?:minuto|dia|hora)\b|limite de (?:tasa|velocidad)|demasiadas (?:solicitudes|peticiones)"
            r"|\bcuota\b|limite de taxa|muitas (?:solicitacoes|requisicoes)|\bcota\b|\bsaldo\b"
            r"|\bal (?:minuto|giorno)\b|limite di frequenza|troppe richieste|\bcredito\b|в (?:минуту|час|день|сутки)"
            r"|слишком много запросов|лимит запросов|\bквот|баланс|\bexpire\b|срок действия токена|недействител"),
         "Die Tokens überschreiten das Limit pro Minute"),
    ),
    # The sentence is about something else.
    *rows("other thing",
        ("string too long", (r"\bstring[_ ](?:is )?(?:too[_ ]long|above[_ ]max)|\b(?:string"
            r"|array) with (?:a )?(?:max\w{0,4} )?length\b|\barray[_ ](?:is )?(?:too[_ ]long|above[_ ]max)"),
         "String too long in the messages"),
        ("field", (r"\b(?:description|names?|title|field|label|metadata|user_?name|password|filename|ur[il]s?"
            r"|headers?|cookies?|identifier|property|schema|enum|pattern|path|suffix|sql|query string|certificate"
            r"|prompt_cache_key|index|chunk|voice"
            r"|key)['\"`)\]]{0,3} (?:\(.{0,30}\) ?)?(?:\w{1,10} ){0,2}(?:too (?:long|large)|exceed\w{0,3}|longer"
            r"|must|at most|should)\b"), "The input description is too long"),
        ("tool definition", (r"\btools?[\[.]\d|\bfunctions?[\[.]\d|\btool[ _](?:name|description|schema"
            r"|argument)s?\b|\binput_schema\b|\b(?:stop|banned|special|bias|suppress\w{0,3})[ _]tokens?\b"
            r"|\bbad_words\b|\blogit_bias\b|\bstop sequences?\b"), "The tool schema in the input is too large"),
        ("tool result", (r"\b(?:tool|mcp|file|page|search|command|plugin|server)\b.{0,60}\b(?:response|result"
            r"|output|contents?)s?\b|\bfile contents? \(|\b(?:file|response|result"
            r"|diff) (?:content )?\(?(?:of )?\d[\d,.]{0,10} ?(?:tokens?)?\)? (?:exceed|is too)|\boutput of\b"
            r"|\b(?:mcp|tool|command|plugin)\b.{0,40}\breturned\b|\bread tool\b|\bfile is \d|\btool[ _]calls?\b"),
         "File content (9000 tokens) exceeds maximum allowed tokens"),
        ("output cut", (r"\blength limit was reached\b|\b(?:output|response|completion|reply|answer"
            r"|generation)\b.{0,60}\b(?:truncated|cut off|incomplete|stopped|ended)\b|\bcould not finish\b"
            r"|\bwhile generating\b|\bunterminated\b|\b(?:output|response|reply|answer"
            r"|embedding)s? (?:\w{1,6} )?(?:exceed\w{0,3}|too (?:long|large))\b"),
         "The model's answer to the messages was cut off: limit reached"),
        ("too small", (r"\btoo (?:small|short|low|few)\b|\bminimum\b|\bmust be (?:positive|at least)\b"
            r"|\b(?:num_ctx|n_ctx|n_batch|ctx-size|top_k|offset) (?:must|should|cannot|exceeds)\b|\bn_ctx_train\b"
            r"|\bn_ctx_per_seq\b|\bcontext[ _](?:window|length|size) (?:must|should)\b"),
         "The context window is too small for the history, it exceeds it"),
        ("engine start", (r"\bgpu_memory|\bout of memory\b|\bwhen initiali[sz]ing\b|\bderived max"
            r"|\bkv cache (?:\(|is |memory|of )|\bin (?:the )?kv cache|\b(?:unable|failed) to (?:load|allocate)\b"
            r"|\b[gm]i?b of\b|\brope\b|\bmax_num_batched|\bmemory\b(?! slot)|\b(?:could not|failed to) start\b"
            r"|\bmax_model_len (?:\S{1,12} )?is (?:larger|greater)\b|\btraining (?:context|example|file|data)"
            r"|\btrained (?:with|on)\b|\bfine-?tun"),
         "The model's max seq len is larger than what is stored in KV cache"),
        ("server", (r"\b(?:try|retry)(?:ing)? (?:again )?(?:later|after|in \d)|\boverloaded\b|\bat capacity\b"
            r"|\bqueue\b|\b(?:took|taking|takes?|waited|waiting|ran) (?:for )?(?:\w{1,8} )?too long\b"
            r"|\btoo long to (?:respond|process|complete|finish|load|generate|answer|run|start)\b"
            r"|\btime(?:d)?[ -]?out\b|\bconnection (?:refused|reset|error|closed)|\bcertificate\b"
            r"|\bsegmentation fault\b|\bunknown flag\b"), "Input tokens exceed the capacity, try again later"),
        ("denied", (r"\b(?:does|do|did|has|have|is|are|was|were) ?(?:not|n't) (?:\w{1,10} )?(?:exceed\w{0,3}"
            r"|too (?:long|large)|longer|larger)\b|\bwithin (?:the |its )?(?:limits?|context)|\bapproaching\b"
            r"|\bbut acceptable\b|\bto avoid\b|\b(?:automatically|will be|being|was|been|is|are"
            r"|successfully) (?:truncated|compacted|shortened|trimmed)\b"),
         "The prompt does not exceed the context window"),
        ("not available", (r"\bnot (?:yet )?available\b|\bdeprecated\b|\bdoes not exist\b|\bbilled at\b"
            r"|\bcontent[_ -](?:filter\w{0,4}|policy|management)\b|\bflagged\b|\bmoderat\w{2,3}\b"),
         "Prompts of more than 200000 tokens are not available, over the limit"),
        ("other model or index", (r"\b(?:image|speech|voice|audio) (?:model|generation|synthesis)\b|\bclip\b"
            r"|\bper (?:chunk|item|row|document)\b|\b(?:search|vector) index\b"),
         "Prompt too long for this image model (max 77 tokens)"),
        ("limit of another thing", (r"\b(?:prompt|context|conversation|history|chat|message|token)s?[ _](?:depth"
            r"|nesting|retention|template|id)\b|\b(?:recursion|iteration|call stack|turn|nesting|stack) (?:limit"
            r"|size|depth)s?\b|\bconcurrent\b"), "maximum context depth exceeded in parser"),
        ("east Asian", (r"(?:名称|描述|标题|字段|用户名|密码|文件名|参数名)(?:长度)?(?:过长|太长|超过|超出"
            r"|不能超过)"), "提示词的名称过长"),
    ),
    # Something else is counted, unless tokens or a context are named too.
    *rows("other unit",
        ("things", (rf"\b(?:too many|at most|up to|more than|limit of|maximum of|takes|has|contains)"
            rf" (?:\d{{1,6}} )?(?:\w{{1,14}} ){{0,2}}{_THINGS}"
            rf"|\b(?:(?:number|count|amount) of|max(?:imum)?(?: number of| of)?) {_THINGS}"),
         "There are too many tools: the messages are too large for the model"),
        ("media", (r"\bbatch\b|\bembedding\b|\b(?:images?|audio|video|speech|voice|file|attachment|pdf"
            r"|document)s?\b.{0,40}(?:\btoo (?:large|long|big)|\bexceed)"), "The batch of inputs is too large"),
        ("characters", (r"\b(?:characters?|chars)\b|\bwords\b|\b(?:bytes?|[kmg]i?b|megabytes?|kilobytes?)\b"
            r"|\d[kmg]i?b\b|\b(?:pixels?|px|octets)\b|\b(?:seconds|minutes|hours|days|pages)\b"),
         "The input exceeds the maximum of the model: 5000 characters"),
        ("east Asian", (r"(?:图片|图像|文件|工具|函数|轮次)(?:数量|个数|数|太多|过多|过大)|\d ?(?:张|个文件|轮)"
            r"|字符|个字|字节|\d ?枚|画像|ファイル|文字|이미지|파일|글자|바이트"), "输入图片过大"),
        ("European", (r"\bzeichen\b|\bdatei|\bbild(?:er)?\b|\bcaracteres\b|\bfichiers?\b|\barquivos?\b"
            r"|\bcaratter\w\b|символ\w{0,3}|\bфайл"), "Die Eingabe ist zu lang: höchstens 5000 Zeichen"),
    ),
)
# fmt: on
