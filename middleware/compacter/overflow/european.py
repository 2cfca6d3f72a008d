"""The table of the detector, continued: German and Russian.

Accents are gone by then (``table``): "überschreitet" is read as "uberschreitet". Words that a
language shares with English, such as "tokens" or "limit", are in ``limits``.
"""

from __future__ import annotations

from typing import Final

from compacter.overflow.table import Row

_GERMAN: Final = (
    Row(
        "context: German",
        r"\bkontext[- ]?(?:fenster|lange|laenge|grosse|groesse|limit|grenze)"
        r"|\bmaximale[nrs]? (?:kontext|prompt|eingabe)"
        r"|\bkontext (?:ist )?voll",
        "Kontextlimit erreicht",
    ),
    Row(
        "subject: German",
        r"\b(?:eingabe|kontext|verlauf|chatverlauf|gesprach|konversation|unterhaltung"
        r"|nachrichten|transkript|frage)",
        "Die Unterhaltung ist zu lang.",
    ),
    Row(
        "request: German",
        r"\b(?:anfrage|nachricht\b|dokument\b|datei\b|inhalt\b)",
        "Die Anfrage ist zu lang für das Modell",
    ),
    Row(
        "exceed: German",
        r"\b(?:ue?berschr(?:eit|itt)|ue?berst(?:eig|ieg)|sprengt|(?:langer|grosser|mehr) als)",
        "Der Prompt überschreitet das Limit des Modells",
    ),
    Row(
        "too long: German",
        r"\bzu (?:lang|gross|umfangreich)",
        "Der Chat ist zu lang",
    ),
    Row("too many: German", r"\bzu viele (?:eingabe-?)?token", "Zu viele Tokens"),
    Row(
        "full: German",
        r"\b(?:voll|erreicht|(?:ausge|er)schoe?pft|pass(?:t|en) nicht)\b",
        "Das Kontextfenster ist ausgeschöpft",
    ),
    Row(
        "limit: German",
        r"\b(?:hoe?chst|erlaubt|zulae?ssig|obergrenze|grenze\b)|[a-z]limit\b",
        "Die Tokens überschreiten die Grenze",
    ),
    Row(
        "length: German",
        r"\b(?:maximal)?(?:lange|laenge|grosse)\b|langenlimit",
        "Der Prompt überschreitet die erlaubte Länge",
    ),
    Row(
        "bound: German",
        r"\b(?:darf|durfen) (?:nur|hochstens|maximal|nicht)\b.{0,30}\d",
        "Die Eingabe darf nur 8192 Tokens haben",
    ),
    Row(
        "reduce: German",
        r"\b(?:ver)?kurze\w{0,3}\b|\b(?:reduzier|verkleiner)\w{1,4}\b",
        "Bitte kürzen Sie die Unterhaltung.",
    ),
    Row(
        "output: German",
        r"\b(?:ausgabe|antwort|generierte)",
        "Die Ausgabe überschreitet das Limit von 8192 Tokens",
    ),
    Row(
        "handled: German",
        r"\b(?:gekue?rzt|abgeschnitten|komprimiert|zusammengefasst|ue?bersprungen|aufgeteilt"
        r"|verworfen|entfernt|reduziert|verringert|angepasst|ausgelassen|weggelassen|geloscht"
        r"|automatisch|ausgeblendet|archiviert"
        r"|ausgelagert|verschoben)\b"
        r"|\bnur (?:die|der|das) (?:\w{3,9} ){0,2}\S{1,12} (?:wurden?|werden)\b"
        r"|\b(?:wird|wurde) in (?:abschnitte|teile|blocke)n\b"
        r"|\b(?:erneuter|neuer) versuch mit\b",
        "Der Verlauf wurde gekürzt: Kontextfenster überschritten",
    ),
    Row(
        "not handled: German",
        r"\b(?:immer noch|weiterhin|trotz|muss|mussen|bitte|kann|konnte\w{0,2} nicht)\b",
        "Kontextfenster überschritten, der Verlauf muss gekürzt werden",
    ),
    Row(
        "other error: German",
        r"\bpro (?:minute|stunde|tag|monat)\b|\b(?:raten|tages|wochen|monats)-?limit"
        r"|\b(?:taglich|wochentlich|monatlich)"
        r"|\bzu viele anfragen\b|\bkontingent|\bguthaben"
        r"|\btoken (?:ist )?(?:abgelaufen|ungultig)\b",
        "Tokens pro Minute: Limit überschritten",
    ),
    Row(
        "other unit: German",
        r"\d nachrichten\b|\b(?:zeichen|bild(?:er)?|seiten|dateien)\b",
        "Die Eingabe ist zu lang: höchstens 5000 Zeichen",
    ),
    Row(
        "other thing: German",
        r"\b(?:um|damit) .{0,40}\bnicht zu ue?berschreiten\b|\bue?berschreitet nicht\b"
        r"|\bkonnte .{0,40}uberschreiten\b"
        r"|^\W{0,3}(?:wenn|falls) .{0,80}uberschreit\w{0,3}, (?:gibt|lehnt|meldet)\b",
        "Der Prompt überschreitet nicht das Kontextfenster",
    ),
)

_RUSSIAN: Final = (
    Row(
        "context: Russian",
        r"контекстн\w{1,4} окн|(?:окн|длин|размер|лимит|емкост)\w{0,3} контекста"
        r"|контекст\w{0,2} (?:модели )?(?:переполн|заполн|исчерпан)",
        "Все это превышает контекстное окно",
    ),
    Row(
        "subject: Russian",
        r"промпт|контекст|сообщения|входн|ввод\b|диалог|истори|переписк|беседа|чат\b|транскрипт"
        r"|вопрос",
        "Диалог слишком длинный",
    ),
    Row(
        "request: Russian",
        r"запрос|текст|сообщение|документ|файл\b|контент\b",
        "Запрос слишком длинный для модели",
    ),
    Row("token: Russian", r"токен", "Токены превышают предел"),
    Row("model: Russian", r"модел", "Запрос слишком длинный для этой модели"),
    Row(
        "exceed: Russian",
        r"превы[шс]|больше,? чем|длиннее",
        "Промпт превышает лимит модели",
    ),
    Row(
        "too long: Russian",
        r"слишком (?:длин|больш|велик|объемн)",
        "Промпт слишком длинный",
    ),
    Row("too many: Russian", r"слишком много токенов", "Слишком много токенов"),
    Row(
        "full: Russian",
        r"исчерпан|достиг|заполнен|переполн|не (?:помеща|вмеща|поме)",
        "Контекстное окно заполнено",
    ),
    Row(
        "limit: Russian",
        r"лимит|предел|ограничени|максим|допустим",
        "Токены превышают предел",
    ),
    Row("length: Russian", r"длин[аыуо]|размер", "Промпт превышает допустимую длину"),
    Row(
        "bound: Russian",
        r"не (?:может|должн\w{1,2}) превышать|не более \d",
        "Ввод: не более 8192 токенов",
    ),
    Row("reduce: Russian", r"сократит|уменьшит|укоротит", "Сократите историю."),
    Row(
        "output: Russian",
        r"\bответ|\bвывод|генераци",
        "Ответ превышает лимит токенов",
    ),
    Row(
        "handled: Russian",
        r"(?:обрезан|усечен|урезан|сокращен|сжат|суммаризирован|разбит|пропущен|удален|отброшен"
        r"|очищен|исключен|прикреплен)[аоы]?\b"
        r"|(?:перемещен|перенесен|скрыт|архивирован|свернут|снижен|уменьшен)[аоы]?\b"
        r"|\b(?:оставлен|сохранен|использован)[аоы]? только\b|\b(?:читаем|читаю"
        r"|обрабатываю) (?:\w{2,8} )?по частям\b"
        r"|\bповторяю\b|\bповторная попытка\b|перезапуск"
        r"|автоматически|применяю|разбиваю|обрезаю|сжимаю|сокращаю|пропускаю",
        "Диалог сокращён: он превышает контекстное окно",
    ),
    Row(
        "not handled: Russian",
        r"все еще|все равно|не удалось|невозможно|долж|пожалуиста|рекоменд",
        "Контекстное окно превышено, диалог должен быть сокращён",
    ),
    Row(
        "other error: Russian",
        r"\b(?:суточн|дневн|недельн|месячн|ежемесячн)|в (?:минуту|час|день|сутки|месяц)"
        r"|слишком много запросов|докупите|тариф|лимит запросов|квот|баланс"
        r"|срок деиствия|недеиствител",
        "Превышен лимит токенов в минуту",
    ),
    Row(
        "other unit: Russian",
        r"\d сообщени|символ|картин|изображени|фаилов|страниц",
        "Промпт слишком длинный: 5000 символов",
    ),
    Row(
        "other thing: Russian",
        r"не превы[шс]|может превысить|^\W{0,3}если .{0,80}превы.{0,60}, (?:api|сервер) (?:верн"
        r"|отклон)"
        r"|чтобы не превысить|во избежание",
        "Промпт не превышает контекстное окно",
    ),
)

EUROPEAN: Final[tuple[Row, ...]] = (*_GERMAN, *_RUSSIAN)
"""Rows of all meanings, as in ``limits`` and ``vetoes``."""
