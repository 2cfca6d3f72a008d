# ruff: noqa: E501 - a row of a vocabulary is one line.
"""The words in which models and servers speak of length, by meaning; one row a language.

A rule combines meanings, so a language is added here and nowhere else. Stems are enough: the text is folded first
(lower case, no accents, see ``text``), and so are these rows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from compacter.overflow.text import fold

if TYPE_CHECKING:
    from collections.abc import Iterable


def meaning(rows: Iterable[str]) -> re.Pattern[str]:
    """One pattern for all languages of a meaning."""
    return re.compile("|".join(f"(?:{fold(row)})" for row in rows))


TOKEN = meaning(
    (
        r"(?<![a-z_])tok(?:en|s?\b)",  # Latin scripts: token, tokens, tokenow, tokenleri
        r"词元|令牌|トークン|토큰|токен|jetons?\b|توكن|رموز|टोकन",
    )
)

CONTEXT = meaning(
    (
        r"context[\s_-]{0,2}(?:window|length|size|len\b|limit|capacity|budget|space)s?",
        r"\b(?:n_ctx|num_ctx|ctx[_ -]?(?:len|size))\b|\bmax_?(?:seq(?:uence)?|model|context|position|total)_?(?:len(?:gth)?|size|embeddings)?\b(?! ?tokens?)",
        r"\btotal (?:sequence|context) length\b|\bmax_(?:input|prompt|context)_tokens\b",
        r"\bmax(?:imum|\.)? (?:(?:allowed|supported|model|total|token|permitted|configured|combined) ){0,2}(?:sequence|seq|context|prompt|input)(?: token)? ?(?:length|len\b|size|tokens?|limit|window)",
        r"\b(?:sequence|prompt|input) (?:length|tokens?|size) (?:limit|maximum|max\b|capacity)|(?:model|llm)'?s? (?:max(?:imum)?|total) (?:sequence |token )?(?:length|len\b)",
        r"上下文(?:的)?(?:最大)?(?:长度|窗口|大小|上限|限制|視窗|長度|視窗大小)|最大上下文|序列长度",
        r"コンテキスト(?:の)?(?:最大)?(?:長|ウィンドウ|ウインドウ|サイズ|上限|制限|の長さ)|最大コンテキスト|文脈長",
        r"(?:컨텍스트|문맥)\s?(?:최대 )?(?:길이|윈도우|창|크기|한도|제한)|최대 (?:컨텍스트|문맥)",
        r"kontext(?:fenster|lange|grosse|limit)|maximale[nrs]? (?:kontext|prompt|eingabe)\w{0,12}",
        r"fenetre (?:de |du )?context\w{0,2}|(?:longueur|taille|limite) (?:maximale |max )?(?:de |du )?(?:context\w{0,2}|sequence)",
        r"ventana de context\w{0,2}|(?:longitud|tamano|limite|largo) (?:maxim[ao] )?(?:de |del )(?:context\w{0,2})",
        r"janela de context\w{0,2}|(?:comprimento|tamanho|limite) (?:maxim[ao] )?(?:de |do )(?:context\w{0,2})",
        r"finestra di contest\w{0,2}|(?:lunghezza|dimensione|limite) (?:massim[ao] )?(?:di |del )(?:contest\w{0,2})",
        r"контекстн\w{1,4} окн\w{0,3}|окн\w{0,3} контекста|(?:длин\w{1,2}|размер\w{0,2}|лимит\w{0,2}) контекста",
        r"контекстн\w{1,4} вікн\w{0,3}|вікн\w{0,3} контексту|довжин\w{1,2} контексту",
        r"contextvenster|contextlengte|okn\w{1,3} kontekstu|dlugosc\w{0,2} kontekstu|baglam (?:penceresi|uzunlugu|boyutu)\w{0,3}",
        r"cua so ngu canh|do dai ngu canh|jendela konteks|panjang konteks|نافذة السياق|طول السياق|संदर्भ (?:विंडो|लंबाई)",
    )
)

SUBJECT = meaning(
    (
        r"\b(?:n_)?(?:input|prompt)_tokens\b|\bprompts?\b|\binputs?\b|\bconversation\b|\bchat\b|\bhistory\b|\bmessages\b|\bcontext\b|\bdialog(?:ue)?\b|\btranscript\b",
        r"输入|提示词?|上下文|对话|消息|历史|会话|輸入|訊息|歷史|對話",
        r"入力|プロンプト|コンテキスト|会話|メッセージ|履歴|文脈",
        r"입력|프롬프트|컨텍스트|문맥|대화|메시지|기록",
        r"\beingabe|\bnachrichten\b|\bkontext|\bunterhaltung\b|\bverlauf\b|\bgesprach\b",
        r"\bentree\b|\binvite\b|\bcontexte\b|\bl'historique\b|\bhistorique\b",
        r"\bentrada\b|\bcontexto\b|\bmensajes\b|\bmensagens\b|\bconversacion\b|\bconversa\b|\bhistorial\b|\bhistorico\b",
        r"\bcontesto\b|\bmessaggi\b|\bconversazione\b|\bcronologia\b",
        r"промпт|контекст|сообщени[йяе]|\bввод|входн|диалог|истори|підказк|повідомлен|вхідн",
        r"\binvoer\b|\bberichten\b|\bgesprek\b|\bkontekst|\bwiadomosci\b|\brozmow|\bwejscie\b|\bistem\b|\bgirdi\b|\bbaglam|\bsohbet\b",
        r"ngu canh|loi nhac|\bmasukan\b|\bkonteks\b|\bpercakapan\b|المدخل|السياق|المحادثة|الرسائل|प्रॉम्प्ट|इनपुट|संदर्भ",
    )
)

REQUEST = meaning(
    (
        r"\brequest(?:ed|s)?\b|\bquery\b|\bbody\b|\bpayload\b|\bmessage\b|\btexts?\b|\bsequence\b|\bcontent\b|\bdocument\b",
        r"请求|內容|内容|文本|請求|リクエスト|テキスト|요청|텍스트|\banfrage\b|\brequete\b|\bsolicitud\b|\bpeticion\b|\bsolicitacao\b|\brequisicao\b",
        r"\brichiesta\b|\btesto\b|\btexto\b|запрос|текст|запит|\bverzoek\b|\bzadanie\b|\bistek\b|\byeu cau\b|\bpermintaan\b|الطلب|अनुरोध",
    )
)

EXCEED = meaning(
    (
        r"\bexce+e?d(?:s|ed|ing)?\b|\bexecee?ds?\b|\bsurpass\w{0,3}\b|\boverflow(?:s|ed|ing)?\b|\boverrun\b|\bexceeds\b|\bexcess\b",
        r"\b(?:longer|larger|greater|bigger|more|higher) than\b|\b(?:is|are|was|goes|went) (?:over|above|beyond)\b|\bover (?:the|its?|your) (?:\w{1,12} ){0,3}limit\b|\btokens over\b",
        r"超过|超出|超限|大于|超長|超過|超出|多于|越界",
        r"超え|上回|オーバー|超過|초과|넘었|넘습|넘어|넘는|벗어",
        r"uberschr(?:eit|itt)\w{0,4}|uberst(?:eig|ieg)\w{0,4}|\b(?:langer|grosser|mehr) als\b",
        r"\bdepass\w{0,5}\b|\bexced\w{1,4}\b|\bexcede\w{0,2}\b|\b(?:plus (?:long|grand)\w{0,2}|superieur\w{0,2}) (?:que|a)\b",
        r"\bexced\w{1,4}\b|\bsupera\w{0,4}\b|\bsobrepas\w{1,4}\b|\brebas\w{1,4}\b|\bmas larg[ao] que\b|\bmayor que\b",
        r"\bultrapass\w{1,4}\b|\bexcede\w{0,4}\b|\bmaior (?:do )?que\b|\bmais long[ao] que\b",
        r"\bsuperat[oaie]\b|\beccede\w{0,3}\b|\boltrepass\w{1,4}\b|\b(?:maggiore|piu lung[ao]) (?:di|del|della)\b",
        r"превы[шс]\w{0,6}|больше,? чем|длиннее|не помеща|перевищ\w{0,6}",
        r"\boverschr(?:ijd|ed)\w{0,3}\b|\bprzekr(?:acza|oczon)\w{0,3}\b|\basi(?:yor|ldi)\b|\basiyor\b|\bvuot qua\b|\bmelebihi\b|يتجاوز|تتجاوز|تجاوز|से अधिक",
    )
)

TOO_LONG = meaning(
    (
        r"\btoo (?:long|large|big|lengthy)\b|\btoo much (?:text|input|context)\b|\boversized?\b|\btoolong\b|\bexcessively long\b",
        r"过长|太长|过大|超长|太大|過長|太長|过多|太多",
        r"長すぎ|大きすぎ|多すぎ|너무 (?:길|깁|긴|큽|크|많)",
        r"\bzu (?:lang|gross|viele?)\b|\btrop (?:long|grand|volumineu|nombreu)\w{0,3}|\bdemasiado (?:larg|grand|extens)\w{0,2}|\bmuy larg[ao]s?\b",
        r"\b(?:muito|demasiado) (?:long|grande|extens)\w{0,2}|\b(?:longo|longa|grande|extenso)s? demais\b|\btroppo (?:lung|grand)\w{0,2}",
        r"слишком (?:длин|больш|мног|велик)\w{0,4}|занадто (?:довг|велик)\w{0,3}|\bte (?:lang|groot)\b|\bzbyt (?:dlug|duz)\w{1,2}\b|\bcok (?:uzun|buyuk)\b",
        r"\bqua dai\b|\bterlalu (?:panjang|besar)\b|طويل[ة]? جدا|बहुत लंब",
    )
)

LIMIT = meaning(
    (
        r"\blimits?\b|\blimited\b|\bmax(?:imum)?\b|\bcapacity\b|\ballowed\b|\bthreshold\b|\bcap\b|\bceiling\b|\ballowance\b|\bbudget\b",
        r"上限|限制|最大|最长|最多|允许|制限|上限|한도|제한|최대|허용",
        r"\blimit|\bgrenze\b|\bmaxim|\bhochst|\bplafond\b|\bmassim|лимит|предел|максимальн|ограничен|допустим|ліміт|обмежен|\bazami\b|\bsinir|\btoi da\b|\bgioi han\b|\blimiet|\bbatas\b|\bmaksim\w{0,3}|الحد|सीमा",
    )
)

MODEL = meaning((r"\bmodel|\bllm\b|\bendpoint\b|\bdeployment\b|模型|モデル|모델|модел|النموذج|मॉडल|mo hinh",))

MUST = meaning(
    (
        r"\b(?:must|should|shall|has to|have to|needs? to|can|may)(?: only)?(?: not|n't)? (?:be|have|contain|exceed)\b|\bcannot (?:be|have|contain|exceed)\b|\brange of\b",
        r"不能超过|不得超过|不可超过|应小于|必须小于|不超过|以下である必要|以内|이하여야|darf nicht|doit etre|ne doit pas|debe ser|no debe|deve ser|nao deve|non deve|долж\w{1,3} быть|не долж\w{1,3}",
    )
)

AT_MOST = meaning(
    (
        r"<=?|\bless than\b|\bfewer than\b|\bat most\b|\bno (?:more|longer|greater|larger) than\b|\bnot? exceed\b|\bcannot exceed\b|\bup to\b|\bbelow\b|\bunder\b|\bshorter than\b|\[\d{1,6}, ?\d{2,9}\]|\bbetween\b|\bwithin\b",
        r"不能超过|不得超过|不可超过|小于|不超过|以下|以内|이하|hochstens|au plus|inferieur|menor|como maximo|no maximo|al massimo|inferiore|не более|меньше|не превыша",
    )
)

FULL = meaning(
    (
        r"\b(?:ran|run|running) out of (?:room|space|context)\b|\breached (?:its|the|your|a)\b|\bhas reached\b|\bis full\b|\bfilled up\b|\bno (?:more )?(?:room|space) (?:left|remain)|\bexhausted\b|\b(?:not|n't) enough\b|\binsufficient\b|\bmaxed out\b|\bhit (?:its|the)\b|\b(?:limit|window|length) hit\b|(?<!be )(?<!not )\breached\b",
        r"\b(?:does|do|did|will|would|can)(?: not|n't) (?:\w{1,10} )?fit\b|\bcannot (?:\w{1,10} )?fit\b|\bunable to fit\b|\bwon't fit\b|\bdoesnt fit\b|\bcannot accommodate\b",
        r"已满|已达|用尽|不足|放不下|いっぱい|達し|収まり|가득|도달|passt nicht|\bvoll\b|erreicht|\batteint|\bplein|ne tient pas|no cabe|alcanz|\bllen|nao cabe|atingi|raggiunt|non entra|\bpien|исчерпан|достигнут|заполнен|не помещ",
    )
)

REDUCE = meaning(
    (
        r"\b(?:reduc|shorten|decreas|truncat|trim|shrink|shorter|compact|smaller|clear|fewer)\w{0,4}\b",
        r"减少|缩短|精简|缩减|減ら|短く|줄여|줄이|kurz|verringer|redui|raccourc|reduz|acort|reduc|encurt|ridur|riduc|accorc|сократ|уменьш",
    )
)
