"""The table of the detector, continued: words that speak against a token limit, in English.

``other error`` and ``handled`` decide against one, ``other thing`` and ``output`` cast doubt on
their sentence, and ``other unit`` on a sentence without tokens or a context; see ``detect``.
"""

from __future__ import annotations

from typing import Final

from compacter.overflow.table import Row

VETOES: Final[tuple[Row, ...]] = (
    # Tokens requested for the completion.
    Row(
        "output: max_tokens",
        r"\bmax(?:imum)?[_-]?tokens?(?:_to_sample)?\b"
        r"|\bmax[_ ]?(?:new|completion|output|generated)[_ ]?tokens?\b|\bn(?:um)?_predict\b"
        r"|\bbudget_tokens\b|\bthinking[_. ]budget\b"
        r"|\bmax(?:imum)? tokens? (?:that )?(?:you |were |was )?"
        r"(?:requested|value|param|setting|must|should)",
        "max_tokens exceeds the token limit",
    ),
    Row(
        "output: output tokens",
        r"\b(?:output|completion|generat(?:ed|ion)|response|reasoning|thinking|new|answer)[ _-]"
        r"(?:tokens?|length|limit)\b"
        r"|\bmax(?:imum|\.)? (?:output|completion|generation|response|new)\b"
        r"|\bcan (?:generate|produce)\b|\bin the (?:answer|reply)\b"
        r"|\bthe (?:answer|reply|response|completion) (?:has|is|was)\b",
        "The completion tokens exceed the limit of the model",
    ),
    # Parts are counted together.
    Row(
        "sum: total",
        r"\b(?:total|combined|together|sum|in your|would exceed|plus)\b",
        "Range of total length should be at most 8192",
    ),
    # An idiom, which is removed before matching.
    Row(
        "idiom: invalid input",
        r"\b(?:input|request|prompt|schema) validation\b|\bvalidation (?:error|exception)\b"
        r"|\b(?:invalid|malformed|bad) (?:input|prompt|messages?|request)\b(?! is| was)"
        r"|\binput should\b",
        "Input validation: the value is larger than the limit, model 7",
    ),
    Row(
        "idiom: other contexts",
        r"\bcontext (?:deadline|cancell?ed|manager)\b|\b(?:ssl|tls|execution"
        r"|browser) context\b|\bprompt cach\w{1,4}\b|\bcontext cach\w{1,4}\b"
        r"|\bcached? content\b",
        "ssl context: record too long",
    ),
    # Another kind of error, with another remedy.
    Row(
        "other error: rate limit",
        r"\brate[-_ ]?limit|\blimit rate\b|\brate window\b|\b[rt]p[mds]\b|\b[io]tpm\b|\bthrottl"
        r"|\btoo many requests\b|\bburst\b"
        r"|\b(?:usage|concurrency|concurrent|spend\w{0,3})[- _]?(?:limits?|requests|tokens)\b",
        "Token rate limit exceeded",
    ),
    Row(
        "other error: in a time",
        r"(?:\b|_)per[ _-](?:min(?:ute)?|sec(?:ond)?|hour|day|week|month)s?\b"
        r"|(?:/ ?|\ban? )(?:min|minute|hour|day|week|month)\b"
        r"|\b(?:in|for|within) the (?:last|past|current) (?:\d|min|hour|day|sec)|\btime ?frame\b"
        r"|\btokens (?:in|within|every) \d{1,4} ?[smh]|\brecently\b",
        "The tokens per minute exceed the limit",
    ),
    Row(
        "other error: wait",
        r"\bresets in\b|\bplease wait\b|\bslow down\b|\bback off\b",
        "Too many tokens, please wait",
    ),
    Row(
        "other error: quota",
        r"\b(?:quotas?|resource (?:has been )?exhausted|credits?|billing|balance|afford|payment"
        r"|prepaid|wallet|spend|costs?|remaining tokens|tokens (?:remaining|left)"
        r"|token (?:allowance|allotment|balance|budget(?!.{0,30}\bcontext)))\b|\$ ?\d",
        "Prompt tokens exceed the quota",
    ),
    Row(
        "other error: limit of a plan",
        r"\b(?:daily|weekly|monthly|hourly|free[- ]tier|trial|account|organi[sz]ation|workspace"
        r"|subscription|plan|tier|team|user|key|project)(?:'s)? (?:\w{1,8} )?"
        r"(?:tokens?|limit|allowance|allotment|cap|budget)\b|\bper-model\b",
        "Monthly token limit exceeded",
    ),
    Row(
        "other error: for a plan",
        r"\b(?:today|this (?:week|month|minute|hour)|(?:current|billing) (?:period|cycle))\b"
        r"|\bfor (?:(?:your|the) (?:\w{1,8} )?(?:account|plan|tier|key|day|project)|user)\b"
        r"|\byour plan\b|\bupgrade (?:your|to continue)\b",
        "Token limit exceeded for your account",
    ),
    Row(
        "other error: access token",
        r"\btokens? (?:is |has |have |was )?(?:been )?"
        r"(?:expired|invalid|revoked|malformed|missing)\b"
        r"|\b(?:expired|invalid|revoked|missing|bad) (?:\w{1,14} )?tokens?\b"
        r"|\b(?:access|refresh|bearer|security|session|auth\w{0,12}|id|api|csrf|jwt|bot"
        r"|verification"
        r"|reset)[-_ ]tokens?\b(?! limit exceeded:)|\b(?:provided|supplied|given) token\b"
        r"|\btokens? (?:registered|issued|validation|verification|lifetime)\b|\bunexpected token\b"
        r"|\bmaximum (?:lifetime|age)\b",
        "Invalid token: the input exceeds the maximum of the model",
    ),
    Row(
        "other error: not allowed",
        r"\bjwt\b|\bapi[-_ ]?keys?\b|\bunauthori[sz]ed\b|\bunauthenticated\b|\bpermission denied\b",
        "Unauthorized: the prompt exceeds the context window",
    ),
    # The text tells what was done about it already.
    Row(
        "handled: was cut",
        r"(?<!request )\b(?:was|were|been|being|is|are|got|will be|automatically|successfully)"
        r" (?:\w{2,12} )?(?:(?:left|filtered) out|folded|moved|archived|hidden|lowered(?! to \d)"
        r"|reduced(?! to \d)|truncated|compacted|shortened|trimmed|cropped|clipped|pruned|condensed"
        r"|compressed|summari[sz]ed|split|chunked|skipped|dropped|discarded|omitted|removed|evicted"
        r"|cleared|excluded)\b",
        "The prompt exceeds the context window and was truncated",
    ),
    Row(
        "handled: cutting",
        r"(?<!\w )\b(?:truncating|clamping|resizing|splitting|skipping|dropping|trimming|pruning"
        r"|chunking|requesting (?:a |the )?(?:final|shorter)|triggering|compacting|compressing"
        r"|shortening"
        r"|summari[sz]ing|discarding|falling back"
        r"|routing|switching|starting a|applying|processing (?:in|alone)"
        r"|using (?:the )?(?:first|last)"
        r"|retrying(?! \d)|attempting|restarting|rerunning)\b"
        r"|\bwill (?:try|retry|chunk|split|truncate|compact|summari[sz]e)\b",
        "The prompt exceeds the context window; truncating it",
    ),
    Row(
        "handled: cut",
        r"(?:^|[\[(:\]>;,-]) ?(?:auto-?)?(?:truncated|compacted|shortened|trimmed|compressed"
        r"|condensed|summari[sz]ed|skipped|dropped|omitted|evicted|elided|pruned|removed"
        r"|discarded|split)\b",
        "Pruned: the prompt exceeds the context window",
    ),
    Row(
        "handled: history compacted",
        r"\b(?:context|conversation|history|messages|prompt) (?:auto-?)?(?:compacted|truncated"
        r"|summari[sz]ed|compressed|trimmed|condensed|pruned)\b|\bskipped:",
        "Context compacted: it exceeds the context window",
    ),
    # What is done, with any verb; the excluded ones go on about the size, or name a thing.
    Row(
        "handled: doing",
        r"[,;\u2013\u2014] (?!(?:includ|exceed|result|total|count|contain|request"
        r"|accord|regard|concern|consider|assum|mak|leav|caus|mean|be|hav|need|requir|surpass"
        r"|overflow|want|expect|bring|reach|giv|consist|compris|noth|someth|anyth|dur|follow|pend"
        r"|miss|stream|process|generat|embedd|warn|str|sett|us|th|amount|add|look|receiv|see"
        r"|fail|abort|stopp|end|cancel|clos|quitt|exit|terminat|rais|try)ing\b)"
        r"[a-z]{2,12}ing (?!error|fail|(?:\w{1,8} ){0,3}~?\d)\w",
        "The document exceeds the context window, returning one page",
    ),
    Row(
        "handled: kept a part",
        r"\b(?:kept|retained|preserved|sent|embedded|included) only \w|\bonly (?:the )?(?:first"
        r"|last"
        r"|most recent|latest|newest) (?:\w{1,9} ){0,3}(?:was|were|are|will be)"
        r" (?!allowed|supported|accepted)"
        r"|\bwe(?:'ve| have)? (?:moved|archived|summari[sz]ed|condensed|shortened|trimmed|removed"
        r"|dropped)\b",
        "The prompt exceeds the context window, kept only the newest messages",
    ),
    Row(
        "handled: in parts",
        r"\b(?:reading|processing|sending|(?:is|was|be) (?:read|processed|sent)) (?:it |them )?"
        r"in (?:\d{1,4} |several |multiple |smaller )?(?:parts|passes|chunks|pieces|sections)\b",
        "The document is too long for the model, reading it in 6 passes",
    ),
    Row(
        "handled: tried again",
        r"\b(?:was|were|been|will be) (?:retried|re-?sent|re-?submitted)\b",
        "The prompt exceeds the context window and was retried",
    ),
    # What was done did not help, or was not done.
    Row(
        "not handled: still",
        r"\b(?:still|even (?:after|when|with)|despite|further|fail(?:s|ed)?)\b",
        "The prompt was truncated, and still exceeds the context window",
    ),
    Row(
        "not handled: cannot",
        r"\b(?:unless|until|cannot|can't|could ?n[o']t|unable|must be|should be|needs? to be"
        r"|has to be|(?:may|can) be)\b"
        r"|\b(?:was|were|is|are|been|will) not\b|\bnot be\b",
        "The prompt exceeds the context window and was not truncated",
    ),
    Row(
        "not handled: log",
        r"\b(?:log|traceback|response|error)s? (?:\w{2,4} ){1,2}"
        r"(?:truncated|shortened|trimmed)\b",
        "The prompt exceeds the context window (the log has been truncated)",
    ),
    # The whole text is about another call.
    Row(
        "other call: embedding",
        r"\b(?:to|for|generat(?:e|ing)|creat(?:e|ing)|get(?:ting)?)[ _]embed(?:ding)?s?\b"
        r"|\bembeddings?(?: |-)?(?:request|api|error|model|failed|validation|context|endpoint"
        r"|input)"
        r"|\bnode ['\"]?embed|\bd[ie] embeddings?\b|\bmax_tokens_per_request\b",
        "Embedding request failed: the prompt exceeds the context window.",
    ),
    # The sentence is about something else.
    Row(
        "other thing: string too long",
        r"\b(?:string|array) with (?:a )?(?:max\w{0,4} )?length\b"
        r"|\b(?:(?:string|array)[_ ](?:is )?(?:too[_ ]long"
        r"|above[_ ]max)(?! for (?:the |this )?(?:context|model)))",
        "String too long in the messages",
    ),
    Row(
        "other thing: field",
        r"\b(?:description|names?|title|field|label|metadata|user_?name|password|filename"
        r"|ur[il]s?|headers?|cookies?|identifier|property|schema|enum|pattern|path|suffix|sql"
        r"|query string|certificate|prompt_cache_key|index|chunk|batch|voice"
        r"|key)['\"`)\]]{0,3} (?:\(.{0,30}\) ?)?(?:\w{1,10} ){0,2}(?:too (?:long|large)"
        r"|exceed\w{0,3}|longer|must|at most|should)\b",
        "The input description is too long",
    ),
    Row(
        "other thing: tool definition",
        r"\b(?:tool[ _](?:name|description|schema|argument)s?|input_schema"
        r"|(?:stop|banned|special|bias|suppress\w{0,3})[ _]tokens?|allowed[ _]token[ _]ids"
        r"|bad_words|logit_bias|stop sequences?)\b|\b(?:tools?[\[.]\d|functions?[\[.]\d)",
        "The tool schema in the input is too large",
    ),
    Row(
        "other thing: tool result",
        r"\b(?:tool(?! input)|mcp|file|page|search|command|plugin|server)\b.{0,60}"
        r"\b(?:response|result|output|contents?|log|stderr|stdout)s?\b|\boutput of\b"
        r"|\b(?:mcp|tool|command|plugin)\b.{0,40}\b(?:returned|printed|logged)\b"
        r"|\bread tool\b|\btool[ _]calls?\b",
        "The tool printed: the prompt exceeds the context window",
    ),
    Row(
        "other thing: file",
        r"\bfile contents? \(|\b(?:file|response|result|diff) (?:content )?\(?(?:of )?"
        r"\d[\d,.]{0,10} ?(?:tokens?|[km]b)?\)? (?:exceed|is too)|\bfile (?:is|has) \d",
        "The diff (9000 tokens) exceeds the token limit",
    ),
    Row(
        "other thing: output cut",
        r"\b(?:length limit was reached|finish_?reason\W{1,3}(?:length|max_tokens)|(?:output"
        r"|response|completion|reply|answer"
        r"|generation)\b.{0,60}\b(?:truncated|cut off|incomplete|stopped|ended)"
        r"|could not finish|while generating|unterminated"
        r"|(?<!and )(?<!plus )(?<!\+ )(?:output|response|reply|answer"
        r"|embedding)s? (?:\w{1,6} )?(?:exceed\w{0,3}|too (?:long|large)))\b",
        "The model's answer to the messages was cut off: limit reached",
    ),
    Row(
        "other thing: too small",
        r"\btoo (?:small|short|low|few)\b(?! for (?:the|this|your)\b|: (?:the |your )?prompt\b)"
        r"|\b(?<!with )minimum\b|\bmust be (?:positive|at least|divisible)\b",
        "The minimum of messages exceeds what the model has",
    ),
    Row(
        "other thing: setting",
        r"\b(?:num_ctx|n_ctx|n_batch|ctx-size|top_k|offset) (?:must|should|cannot|exceeds)\b"
        r"|\bn_ctx_(?:train|per_seq)\b|\bcontext[ _](?:window|length|size) (?:must|should)\b"
        r"|\brequested context \w{4,6} is (?:greater|larger) than (?:the )?model"
        r"|\b(?:configured|selected) (?:context|sequence)[_ ]\w{3,10}.{0,10} "
        r"(?:exceeds|is larger)\b",
        "The n_ctx_train exceeds the context window",
    ),
    Row(
        "other thing: engine start",
        r"\b(?:when initiali[sz]ing|(?:unable|failed) to (?:load|allocate)|rope|max_num_batched"
        r"|(?:could not|failed to) start|max_model_len (?:\S{1,12} )?is (?:larger|greater)"
        r"|derived max|trained (?:with|on|model|context))\b|\bfine-?tun"
        r"|\btrain(?:ing)? (?:context|example|sample|file|data)",
        "The trained context exceeds the context window",
    ),
    Row(
        "other thing: memory",
        r"\b[gm]i?b of\b|\bgpu_memory|\bv?ram\b|\bmemory\b(?! (?:slot|window))"
        r"|\bkv cache (?:\(|is (?!full)|memory|of )(?!.{0,30}max_kv_size)|\bin (?:the )?kv cache"
        r"|\bcache (?:entry|limit)|\bsession file",
        "The model's max seq len is larger than what is stored in KV cache",
    ),
    Row(
        "other thing: server",
        r"\b(?:overloaded|service unavailable|at capacity|queue|certificate|segmentation fault"
        r"|unknown flag)\b|\be?timed?[ -]?out\b|\bconnection (?:refused|reset|error|closed)"
        r"|\b(?:try|retry)(?:ing)? (?:again )?(?:later|after|in \d)",
        "Input tokens exceed the capacity, try again later",
    ),
    Row(
        "other thing: time",
        r"\b(?:took|taking|takes?|waited|waiting|ran) (?:for )?(?:\w{1,8} )?(?:too long|longer)\b"
        r"|\btoo long to (?:respond|process|complete|finish|load|generate|answer|run|start)\b",
        "The model took too long for the prompt",
    ),
    Row(
        "other thing: denied",
        r"\b(?:do|does|did|ha[sd]|have|is|are|was|were)(?: not|n't) (?:\w{1,10} )?"
        r"(?:exceed\w{0,3}|too (?:long|large)|longer|larger)\b"
        r"|^\W{0,3}(?:if|when(?:ever)?|once) .{0,80}(?:exceed|too long|larger|longer|over)"
        r".{0,80}, (?:the |an? |it )(?:\w{1,12} ){0,2}(?:returns|raises|throws|fails|responds"
        r"|rejects)\b"
        r"|\b(?:may|might|could) exceed\b"
        r"|\bnot an? (?:\w{5} )?context overflow\b|\bwill result in indexing\b"
        r"|\bapproaching\b|\bbut acceptable\b|\bto avoid\b"
        r"|(?<!fit )\bwithin (?:the |its )?(?:limits?|context)",
        "The prompt does not exceed the context window",
    ),
    Row(
        "other thing: not available",
        r"\b(?:not (?:yet )?available|deprecated|does not exist|billed at"
        r"|content[_ -](?:filter\w{0,4}|policy|management)|flagged|moderat\w{2,3})\b",
        "Prompts of more than 200000 tokens are not available, over the limit",
    ),
    Row(
        "other thing: limit of another thing",
        r"\b(?:image|speech|voice|audio) (?:model|generation|synthesis)\b|\benqueued\b|\bclip\b"
        r"|\b(?:in|per|submitted) batch\b|\bper (?:chunk|item|row|document)\b|\bconcurrent\b"
        r"|\b(?:search|vector) index\b",
        "The prompt exceeds the context window of the image model",
    ),
    Row(
        "other thing: size",
        r"\b(?:limit|limite|maximum)(?: de contexte)? (?:of|de|is|von|di) \d[\d.,]{0,9} ?"
        r"(?:[kmg]i?[bo]|bytes|octets|characters)\b",
        "The diff exceeds the context limit of 256 KiB",
    ),
    Row(
        "other thing: depth",
        r"\b(?:prompt|context|conversation|history|chat|message|token)s?[ _]"
        r"(?:depth|nesting|retention|(?<!chat )template|id)\b"
        r"|\b(?:recursion|iteration|call stack|turn|nesting|stack) (?:limit|size|depth)s?\b",
        "maximum context depth exceeded in parser",
    ),
    # Something else is counted, unless tokens or a context are mentioned too.
    Row(
        "other unit: things",
        r"\b(?:too many|at most|up to|more than|limit of|takes|has|contains"
        r"|(?:number|count|amount) of"
        r"|max(?:imum)?(?: number)?(?: of)?) (?:\d{1,6} )?(?:\w{1,14} ){0,2}(?:image|document"
        r"|tool|function|file|attachment|item|element|request|choice|stop sequence|message"
        r"|turn|step|block|page|video|label|propertie|input|text|row|key|section|breakpoint"
        r"|word|device)s\b(?! tokens?)",
        "There are too many tools: the messages are too large for the model",
    ),
    Row(
        "other unit: media",
        r"\b(?:batch|embedding)\b|\b(?:images?|audio|video|speech|voice|attachment)s?\b.{0,40}"
        r"\b(?:too (?:large|long|big)|exceed)|\b(?:file|pdf|document)s?\b.{0,40}"
        r"\b(?:too (?:large|long|big)|exceed)(?! for (?:the |this )(?:\w{2,10} ){0,2}model)",
        "The batch of inputs is too large",
    ),
    Row(
        "other unit: characters",
        r"\b(?:characters?|chars|words|bytes?|[kmg]i?b|megabytes?|kilobytes?|pixels?|px|octets"
        r"|seconds"
        r"|minutes|hours|days|pages|body size)\b|\d[kmg]i?b\b"
        r"|\b(?:body|content|entity|payload) too large\b(?! for)",
        "The input exceeds the maximum of the model: 5000 characters",
    ),
)
