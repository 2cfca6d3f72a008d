"""Words of standing instructions in other languages than English.

A sentence with a word that *lasts* is an instruction unless it *tells* of somebody, as most that
begin with "I", "he" or "it" do.
"""

from __future__ import annotations

from typing import Final

from compacter.summary.rule_words import Row

LASTING: Final[tuple[Row, ...]] = (
    Row(
        "lasts: German, from now on",
        r"\b(?:ab (?:jetzt|sofort)|von nun an|künftig|in zukunft|auf keinen fall|keinesfalls|"
        r"unter keinen umständen|ich bevorzuge)\b",
        "Ab jetzt reden wir Deutsch.",
    ),
    Row(
        "lasts: German, please not",
        r"\bbitte (?:\w{1,20} )?(?:kein\w{0,20}|nicht|nur)\b|"
        r"\b(?:(?:duze|sieze|nenne?) mich|ich möchte,? dass (?:du|sie))\b",
        "Bitte keine Abkürzungen.",
    ),
    Row(
        "lasts: German, you must not",
        r"\b(?:du|sie) (?:darfst|dürfen|sollst|sollen|musst|müssen)(?: \w{1,20}){0,3} "
        r"(?:nicht|kein\w{0,20}|nur)\b",
        "Du darfst die Tabelle nicht löschen.",
    ),
    # "Nie" is also the Polish "not".
    Row(
        "lasts: German, always",
        r"\b(?:niemals|(?<=\w )nie(?![^.\n]{0,200}[ąćęłńóśźż])|immer|stets|ausschließlich|"
        r"höchstens)\b",
        "Starte den Dienst nie am Tag neu.",
    ),
    Row(
        "lasts: French, from now on",
        r"\b(?:désormais|dorénavant|à partir de maintenant|en aucun cas|sous aucun prétexte|"
        r"il ne faut pas|sans mon accord)\b",
        "Désormais, le port ferme à six heures.",
    ),
    Row(
        "lasts: French, you must",
        r"\b(?:(?:tu|vous) (?:ne )?(?:dois|devez)|je préfère|"
        r"(?:appelle|appelez|tutoie|tutoyez|vouvoie|vouvoyez)-moi)\b",
        "Tu dois rester poli.",
    ),
    Row(
        "lasts: French, always",
        r"\b(?:jamais|toujours|uniquement)\b",
        "Réponds toujours avec un exemple.",
    ),
    Row(
        "lasts: Spanish, from now on",
        r"\b(?:a partir de ahora|de ahora en adelante|en ningún caso|llám[ae]me|tutéame|prefiero|"
        r"sin mi permiso)\b",
        "De ahora en adelante hablamos de usted.",
    ),
    Row(
        "lasts: Spanish, always",
        r"\b(?:nunca|jamás|siempre|únicamente)\b",
        "Usa siempre el sistema métrico.",
    ),
    Row(
        "lasts: Portuguese, from now on",
        r"\b(?:a partir de agora|de agora em diante|em hipótese alguma|chame-me|prefiro)\b",
        "A partir de agora, falamos de vendas.",
    ),
    # "Mai" is also the German and the French "May".
    Row(
        "lasts: Italian, from now on",
        r"\b(?:d'ora in poi|in nessun caso|chiamami|preferisco|sempre|non [^.\n]{0,40}\bmai|"
        r"mai più)\b",
        "Non usare mai il vecchio modulo.",
    ),
    Row(
        "lasts: Russian, always",
        r"\b(?:с этого момента|ни в коем случае|называй меня|отныне|нельзя|запрещено|никогда|"
        r"всегда|только|обязательно)\b",
        "Никогда не закрывай ворота.",
    ),
    Row(
        "lasts: Polish, always",
        r"\b(?:od teraz|pod żadnym pozorem|nie wolno|nigdy|zawsze|wyłącznie)\b",
        "Nigdy nie ruszaj folderu zdjęć.",
    ),
    Row(
        "lasts: Dutch, Scandinavian and Turkish, always",
        r"\b(?:nooit|altijd|aldrig|alltid|asla|daima)\b",
        "Gebruik nooit afkortingen.",
    ),
    Row(
        "lasts: reply in a language",
        r"\b(?:antworte|schreibe?|sprich|réponds|répondez|écris|parle|responde|escribe|habla|"
        r"rispondi|scrivi|responda|отвечай|пиши)\b[^.\n]{0,40}\b(?:auf|en|in|em|на|по)\b",
        "Antworte auf Deutsch.",
    ),
    Row(
        "order: do not, in Romance languages and Russian",
        r"(?:(?:por favor,? |s'il te plaît,? )?(?:ne |n'|no (?:me llames|uses|hagas|digas|"
        r"menciones|incluyas|sugieras|borres|toques|envíes|cambies|modifiques|escribas|"
        r"compartas)\b|não (?:use|faça|apague|mude|altere|envie|mencione|partilhe|compartilhe|"
        r"sugira)\b|не (?:предлагай|трогай|пиши|меняй|удаляй|используй|добавляй|упоминай|"
        r"отправляй)(?:те)?\b))",
        "No borres nada.",
    ),
    Row(
        "order: do not, in German",
        r"(?:bitte )?(?:verwende|benutze|nutze|nimm|schreibe?|zeige?|gib|nenne?|erwähne|ändere|"
        r"lösche|installiere|verschicke?|sende)\b[^.\n]{0,60}\b(?:kein\w{0,2}|nicht)\b",
        "Verwende keine fremden Bibliotheken.",
    ),
    # Scripts without spaces: at any place, with a quick look first whether it is another script.
    Row(
        "lasts: Chinese",
        r"(?=[^\0-\x7f])(?:绝不|绝对不|永远不|不要(?!紧)|不得|不许|不准|禁止|切勿|请勿|务必|必须|"
        r"一定要|始终|只能用|只用|不超过|今后|以后(?:都|请|不)|从现在(?:起|开始)|"
        r"(?:请|都)用(?:中文|英文|英语|日语|德语|法语)|叫我|称呼我|每次都|絕不|不許|務必|必須|"
        r"從現在(?:起|開始)|請勿)",
        "绝不要在周末发布新版本。",
    ),
    Row(
        "lasts: Japanese",
        r"(?=[^\0-\x7f])(?:絶対に|決して|必ず|常に|今後は|これからは|"
        r"(?:し|使わ|書か|送ら|変え)ないで|てはいけません|以内[でに]|と呼んで|"
        r"日本語で(?:答|書|返))",
        "必ず日本語で書いてください。",
    ),
    Row(
        "lasts: Korean",
        r"(?=[^\0-\x7f])(?:절대|항상|반드시|하지 ?마|마세요|앞으로는|금지)",
        "테스트 데이터는 절대 삭제하지 마세요.",
    ),
    Row(
        "lasts: Arabic",
        r"(?=[^\0-\x7f])(?:يجب ألا|يجب أن|لا تستخدم|لا ترسل|لا تحذف|دائما|أبدا)",
        "لا تحذف هذا الملف أبدا.",
    ),
)

TELLING: Final[tuple[Row, ...]] = (
    Row(
        "tells: I, we, he, it",
        # "Ich bevorzuge Tee" tells what is wanted.
        r"^\W{0,4}(?:ich(?! (?:bevorzuge|möchte))|wir|er|es|das|mein\w{0,20}|man|je(?! préfère)|"
        r"elle|on|nous|ça|c'|mon|ma|j'|yo(?! prefiero)|él|ella|mi|eu(?! prefiro)|"
        r"ele|ela|meu|minha|io(?! preferisco)|lui|noi|я|мы|он|она|мой|моя|это|ja|ik|jag|jeg|hij|"
        r"wij)\b",
        "Yo siempre como tarde.",
    ),
    # "The server always crashes" tells; "The server must always run" does not.
    Row(
        "tells: the server, German",
        r"^\W{0,4}(?:der|die|dieser?|ein|eine|unser|unsere)\b"
        r"(?![^.\n]{0,200}\b(?:muss|müssen|soll|sollen|sollte|sollten|darf|dürfen|bitte)\b)",
        "Der Server stürzt immer ab.",
    ),
    Row(
        "tells: the server, French",
        r"^\W{0,4}(?:le|la|les|ce|cette|ces|notre)\b"
        r"(?![^.\n]{0,200}\b(?:doit|doivent|devrait|devraient|faut|peut|peuvent)\b)",
        "Le serveur tombe toujours en panne.",
    ),
    Row(
        "tells: the server, Spanish, Portuguese and Italian",
        r"^\W{0,4}(?:el|los|las|este|esta|o|os|as|il|lo|gli|questo|questa)\b"
        r"(?![^.\n]{0,200}\b(?:debe|deben|tiene|tienen|puede|pueden|deve|devem|pode|podem|devono|"
        r"può|possono|ne faut)\b)",
        "El servidor siempre se cae.",
    ),
    Row(
        "tells: past tense",
        r"\b(?:avons|habe|haben|hatte|hemos)\b|\b(?:he|ha|han) \w{1,20}do\b",
        "Nunca he vivido en Lima.",
    ),
    Row(
        "tells: I, he, this in scripts without spaces",
        r"^(?:我(?!希望|要求|要你|想让你|需要你)|他|她|它|这|那|私|僕|俺|彼|これ|나는|저는|그는)",
        "私は必ず行きます。",
    ),
)

CHANGES: Final[tuple[Row, ...]] = (
    Row(
        "takes back: German",
        r"\b(?:nicht mehr|wieder|doch|vergiss|stattdessen|jetzt|darfst|egal)\b",
        "Du darfst Kommentare schreiben.",
    ),
    Row(
        "takes back: French",
        r"\b(?:à nouveau|oublie|maintenant|peux)\b",
        "Tu peux modifier ce fichier.",
    ),
    Row(
        "takes back: Spanish, Portuguese and Italian",
        r"\b(?:ya no|de nuevo|olvida|ahora|puedes|não precisa|agora|pode|non più|adesso|puoi)\b",
        "Ya no hace falta.",
    ),
    Row(
        "takes back: Russian and Polish",
        r"\b(?:больше не|теперь|можно|już nie|teraz|możesz)\b",
        "Теперь это разрешено.",
    ),
    Row(
        "takes back: Chinese, Japanese and Korean",
        r"(?=[^\0-\x7f])(?:不再|不用再|可以|取消|改成|改为|现在|忘掉|算了|もう|取り消|やめ|変更|"
        r"かまいません|構いません|いいです|이제|더 이상|취소|돼요|바꿔)",
        "现在都行。",
    ),
)
