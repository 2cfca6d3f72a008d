# ruff: noqa: E501 - a row of a vocabulary is one line; a sample message may look like code.
"""What looks like a token limit and is another thing; each rule stands beside one message that it is for."""

from __future__ import annotations

import re

from compacter.overflow.words import CONTEXT, SUBJECT, TOKEN, meaning

OUTPUT_PARAM = re.compile(
    r"\bmax_?(?:new_?|completion_?|output_?|generated_?|gen_?)?tokens?(?:_to_sample|_to_generate)?\b(?<!max tokens)"
    r"|\b(?:num_predict|n_predict|budget_tokens|thinking[_. ]budget)\b"
    r"|\b(?:output|completion|generated|generation|response|reasoning|thinking|new)[ _](?:tokens?|length)\b"
    r"|\bmax(?:imum|\.)? (?:output|completion|generation|response|new)\b"
    r"|\bmax(?:imum)? tokens? (?:that )?(?:you |were |was )?(?:requested|value|param\w{0,6}|setting|field|option|must|should|cannot|to sample)\b",
)
"""The room asked for the answer, under the names that APIs give it."""

INPUT_PART = re.compile(
    SUBJECT.pattern + r"|\btotal\b|\bcombined\b|\bsum\b|\bin your\b|\bwould exceed\b|\bplus\b|总长|總長|合計|합계",
)
"""Words by which a sentence counts the messages as well."""

# Phrases whose "input", "prompt" or "context" is a manner of speaking.
IDIOM = re.compile(
    r"\b(?:input|request|prompt|body|schema) validation\b|\bvalidation (?:error|exception)\b|\b(?:invalid|malformed|bad) (?:input|prompt|messages?|request)\b(?! is| was)"
    r"|\bcontext (?:deadline|cancell?ed|manager)\b|\binput_?(?:ids|schema|type|value)\b|\bhistory of\b"
    r"|\b(?:ssl|tls|execution|security|browser|rendering|http) context\b|\bin (?:this|the) context\b(?![ _-](?:window|length|size|limit|budget))|\bprompt cach\w{1,4}\b|\bcontext cach\w{1,4}\b|\bcached? content\b",
)

HARD = (
    # Such as: Rate limit reached for model x on tokens per minute: limit 1000, used 900, requested 300
    (
        "rate",
        meaning(
            (
                r"\b(?:exceed\w{0,3}|reach\w{0,3}|hit|over|crossed|surpass\w{0,3}|violat\w{0,3})\b.{0,80}\b(?:rate[- _]?limits?|limit rate|(?:[rt]p[mds]|requests? limit))\b",
                r"\b(?:rate|request|usage|concurrency|spend\w{0,3}|budget)[- _]?limits?\b.{0,60}\b(?:exceed\w{0,3}|reach\w{0,3}|hit)\b|\brate[-_ ]?limit(?:ed|_exceeded|_error|_reached|ing)\b",
                r"(?:\b|_)per[ _-](?:min(?:ute)?|second|sec|hour|day|week|month)\b|/ ?(?:min|minute|hour|day)\b|\b(?:tpm|rpm|tpd|itpm|otpm|rpd)\b",
                r"\btoo many requests\b|\bthrottl\w{1,6}|\bplease wait\b|\btoo (?:frequent|fast)\b|\bslow down\b|\bconcurren\w{1,3} (?:limit|requests?)\b|\bcooldown\b",
                r"频繁|限流|限速|每分钟|每秒|每天|速率|并发|稍后再?试|頻繁|毎分|1分あたり|レート制限|レートリミット|분당|속도 제한|요청이 너무 많",
                r"\bpro minute\b|ratenlimit|zu viele anfragen|\bpar minute\b|limite de (?:debit|taux)|trop de requetes|\bpor minut[oa]\b|limite de (?:tasa|taxa|velocidad)|demasiadas (?:solicitudes|peticiones)|muitas (?:solicitacoes|requisicoes)|\bal minuto\b|limite di frequenza|troppe richieste|в минуту|слишком много запросов|частот\w{1,2} запросов|лимит запросов|za duzo zadan|te veel verzoeken|\bdakikada\b|cok fazla istek|qua nhieu yeu cau",
            )
        ),
    ),
    # Such as: You exceeded your current quota, check your billing
    (
        "quota",
        meaning(
            (
                r"\bquotas?\b|insufficient[_ ](?:quota|balance|credits?|funds)|\bcredits?\b|\bbilling\b|\bbalance\b|\bpaid plan\b|\bafford\b|\bpayment\b|\bprepaid\b|\bspend(?:ing)?\b",
                r"\b(?:daily|weekly|monthly|hourly|per-day|free[- ]tier|trial|account|organi[sz]ation|workspace|subscription|plan|tier|usage|user|team|key|weekly/monthly)(?:'s)? (?:token |usage |limit |token usage ){0,2}(?:limit|allowance|allotment|cap|budget)\b",
                r"\b(?:tokens?|token limit|limit|allowance)\b.{0,30}\b(?:today|this month|this week|for the day|for your (?:account|organi[sz]ation|plan|tier|key|subscription))\b",
                r"\bresource (?:has been )?exhausted\b|\bremaining tokens\b|\btokens (?:remaining|left)\b|\btoken (?:allowance|allotment|balance)\b",
                r"配额|额度|余额|欠费|账户|套餐|クォータ|残高|利用枠|할당량|잔액|크레딧|\bkontingent\b|\bguthaben\b|\bcredits\b|\bsolde\b|\bsaldo\b|\bcuota\b|\bcota\b|квот\w{1,2}|баланс|\bcredito\b|\bkota\b|\blimiet van je abonnement\b",
            )
        ),
    ),
    # Such as: The access token has expired / Invalid API key
    (
        "auth",
        meaning(
            (
                r"\btokens? (?:is |has |have |was |were |included .{0,30}is )?(?:been )?(?:expired|invalid|revoked|malformed|missing|not valid|required)\b|\b(?:expired|invalid|revoked|missing|bad) (?:\w{1,14} )?tokens?\b",
                r"\b(?:access|refresh|bearer|security|session|auth\w{0,12}|id|api|csrf|jwt|oauth|sso|device|user|bot|personal access|registration|push)[-_ ]tokens?\b|\bjwt\b|\bapi[-_ ]?keys?\b|\bunauthori[sz]ed\b|\bunauthenticated\b|\bpermission denied\b|\bforbidden\b",
                r"令牌(?:已)?(?:过期|失效|无效)|token ?(?:已)?(?:过期|失效|无效)|鉴权|认证失败|トークン(?:が|の)?(?:有効期限|無効|期限切れ)|토큰이? ?(?:만료|유효하지)|token (?:ist )?abgelaufen|jeton (?:a )?expire|token (?:ha )?(?:caducado|expirado|scaduto|expirou)|токен (?:истек|недействител|просрочен)\w{0,3}|срок действия токена",
            )
        ),
    ),
)
"""Kinds of error with a cure of their own. The last of several statements decides between these and a token limit."""

_COUNTED = r"(?:images?|documents?|tools?|functions?|files?|attachments?|items|elements|requests?|choices|stop sequences|messages|turns|rounds|steps|blocks|pages|videos?|frames|labels|parameters|properties|enum\w{0,7}|inputs|arguments|texts|embeddings|connections|redirects|retries|iterations|columns|rows|tags|keys|sections|breakpoints|cache_control)"

SOFT = (
    # Such as: too many images: 104 + 1 > 100 / at most 128 tools
    (
        "count",
        meaning(
            (
                rf"\btoo many (?:\w{{1,14}} ){{0,2}}{_COUNTED}\b(?! tokens?)|\b(?:number|count|amount) of {_COUNTED}\b(?! tokens?)|\bmax(?:imum)? (?:number of |of )?{_COUNTED}(?<=s)\b|\b(?:at most|up to|more than|limit of|maximum of) \d{{1,6}} (?:\w{{1,14}} )?{_COUNTED}\b(?! tokens?)|\barray_above\w{{0,12}}\b|\barray too long\b",
                rf"\b(?:tool[ _]calls?|recursion|iteration|call stack|turn|nesting|batch|stack)s? (?:limit|size|depth)\b|\bbatch size\b|\b(?:images?|audio|video|file|photo|attachment|pdf)s?\b.{{0,25}}(?:\btoo (?:large|long|big)|\bexceed)|\bmax_?(?:turns|iterations|steps|retries)\b|\b{_COUNTED} (?:count|limit)\b",
                r"(?:图片|图像|文件|工具|函数|消息|轮次)(?:数量|个数|数)|枚の画像|画像(?:の)?(?:数|枚数)|이미지 (?:수|개수)|zu viele (?:bilder|dateien|werkzeuge)|trop d[e'] ?(?:images|fichiers|outils)|demasiad[oa]s (?:imagenes|archivos|herramientas)|(?:muitas|muitos) (?:imagens|arquivos)|tropp[ei] (?:immagini|file)|слишком много (?:изображений|файлов|инструментов)",
            )
        ),
    ),
    # Such as a description of a tool: string too long, maximum length 1024
    (
        "field",
        meaning(
            (
                r"\bstring[_ ](?:is )?(?:too[_ ]long|above[_ ]max)|\bstring_above_max_length\b|\b(?:string|array|object) with (?:a )?(?:maximum )?length\b|\btools?[\[.]\d|\bfunctions?[\[.]\d|\bmax_?length\b(?=.{0,40}char)",
                r"\b(?:description|name|names|title|field|label|metadata|user_?name|password|filename|url|uri|urls|header|headers|cookie|cookies|user id|user_id|identifier|property|property name|schema|enum|pattern|regex|argument list|path|subject|tag|column|key|suffix|stop sequence|logit_bias|safety_identifier|prompt_cache_key|e-?mail|signature|caption|comment|tweet|statement|expression|sql|query string|audio|video|recording|clip)s?['\"`)\]]{0,3} (?:\(.{0,30}\) ?)?(?:\w{1,10} ){0,2}(?:too long|too large|exceed\w{0,3}|longer than|must be|must have|at most|cannot|can't|should)\b",
                r"\btool argument\b|\b(?:stop|banned|special|bias|suppress\w{0,3})[ _]tokens?\b|\b(?:bad_words|logit_bias|tool schema)\b|\btool[ _]name\b|\btool[ _]description\b|\bdescription\b.{0,30}\blength\b|\burl too long\b|\buri too (?:long|large)\b|\brequest header\b|\brequest-uri\b",
                r"(?:名称|描述|标题|字段|用户名|密码|文件名|参数名)(?:长度)?(?:过长|太长|超过|超出|不能超过)|(?:名前|説明|タイトル|ファイル名)(?:が|は)|(?:이름|설명|제목)(?:이|은|가)",
            )
        ),
    ),
    # Such as: MCP tool response (30000 tokens) exceeds maximum allowed tokens
    (
        "tool output",
        meaning(
            (
                r"\b(?:tool|mcp|function|file|page|search|command|plugin|server|skill)\b.{0,60}\b(?:response|result|output|content|contents)s?\b|\b(?:tool|file|response|output|result|page|screenshot|diff|attachment) (?:content )?\(?(?:of )?\d[\d,.]{0,10} ?(?:tokens?)?\)? (?:exceed|is too)|\bfile contents? \(|\bresponse\b.{0,30}\bexceeds? (?:the )?max",
            )
        ),
    ),
    # Such as: Could not parse the reply as the length limit was reached
    (
        "output cut",
        meaning(
            (
                r"\blength limit was reached\b|\blengthfinishreason|\boutput (?:token )?limit\b|\b(?:output|response|completion|reply|answer|generation)\b.{0,60}\b(?:truncated|cut off|incomplete|stopped|ended)\b|\bfinish_reason\b.{0,8}\blength\b|\bwhile generating\b|\b(?:output|response|completion|reply|answer|generation) (?:has |was |is |had )?(?:exceed\w{0,3}|too (?:long|large))\b|\bbefore completing\b|\bcould not finish\b|\bunterminated\b|\bmax_tokens (?:was |limit was |limit )?reached\b",
            )
        ),
    ),
    # Such as: Model context window too small (minimum is 16000) / try decreasing max_model_len when initializing the engine
    (
        "config",
        meaning(
            (
                r"\btoo (?:small|short|low|few)\b|\bminimum\b|\bat least \d{1,9} (?:tokens )?(?:are|is) (?:required|needed)|\bgpu_memory|\bgpu memory\b|\bout of memory\b|\bwhen initiali[sz]ing\b|\bengine args?\b|\bderived max|\btensor parallel|\b--max-model-len\b|\bmax_position_embeddings in\b|\bcuda\b|\bkv cache \(|\bstored in (?:the )?kv|最小|至少|太小|過小",
            )
        ),
    ),
    # Such as: took too long to respond to the prompt
    (
        "time",
        meaning(
            (
                r"\b(?:took|taking|takes?|takes|waited|waiting|idle|open|running|ran) (?:for )?(?:\w{1,8} )?too long\b|\btoo long to (?:respond|process|complete|finish|load|generate|reply|answer|run|start|return|connect)\b|\btime(?:d)?[ -]?out\b|\bdeadline exceeded\b|\btoo long ago\b",
            )
        ),
    ),
    # Such as: The context is large, but acceptable / does not exceed the limit
    (
        "denied",
        meaning(
            (
                r"\bbut acceptable\b|\b(?:does|do|did|has|have|is|are|was) ?(?:not|n't) (?:\w{1,10} )?(?:exceed\w{0,3}|too (?:long|large)|longer|larger)\b|\bdoesn't exceed\b|\bwithin (?:the |its )?(?:limits?|context window|context length)\b|\b(?:automatically|will be|being|was|been) (?:truncated|compacted|shortened|trimmed)\b|\b(?:approaching|close to|nearing)\b|\bnot (?:yet )?available\b|\bto avoid\b",
            )
        ),
    ),
    # Such as: Request body of 5242880 bytes exceeds the limit / exceeds 4000 characters
    (
        "unit",
        meaning(
            (
                r"\b(?:characters?|chars)\b|\b(?:bytes?|[kmg]i?b|megabytes?|kilobytes?|gigabytes?|mbytes)\b|\d[kmg]i?b\b|\b(?:pixels?|px|seconds|minutes|hours|days|pages)\b|字符|个字|字节|文字|글자|바이트|\bzeichen\b|\bcaract\w{2,5}\b|\bcaratter\w\b|\boctets\b|символ\w{0,3}|знак\w{0,2}|\bznakow\b|\btekens\b|\bkarakter\w{0,2}\b|\bky tu\b",
            )
        ),
    ),
    # Such as: content_filter / the prompt was flagged
    (
        "policy",
        meaning(
            (
                r"\bcontent[_ -](?:filter\w{0,4}|policy|management)\b|\bflagged\b|\bmoderation\b|\bsafety (?:system|filter)\b|\bjailbreak\b|内容审核|敏感",
            )
        ),
    ),
)
"""What makes one sentence no evidence; a clear token limit in another sentence still counts."""

_TEXT_BYTES = re.compile(r"\b(?:text|prompt|context|input) (?:\w{1,10} )?bytes\b")
_EXTRA_UNIT = ("unit", "count", "tool output")


def hard_veto(segment: str) -> str | None:
    """The kind of error that a sentence states outright, or None."""
    return next((name for name, pattern in HARD if pattern.search(segment)), None)


def soft_veto(segment: str) -> str | None:
    """Why a sentence that sounds like a token limit is none, or None."""
    plain = IDIOM.sub(" ", segment)
    # Such as: max_tokens is too large, this model supports at most 4096 completion tokens
    if OUTPUT_PARAM.search(plain) and not INPUT_PART.search(OUTPUT_PARAM.sub(" ", plain)):
        return "output parameter"
    for name, pattern in SOFT:
        if not pattern.search(segment):
            continue
        # "exceeds the context window (about 400000 characters)" counts characters and means tokens all the same.
        if name in _EXTRA_UNIT and (
            _TEXT_BYTES.search(segment) or (TOKEN.search(segment) and name == "unit") or CONTEXT.search(plain)
        ):
            continue
        return name
    return None
