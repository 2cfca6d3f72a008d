"""Labels of secrets (``password:``, "the token is ..."), and whether the value behind one is a
secret, or a name, a type, a word of the sentence.
"""

from __future__ import annotations

import re

# Labels before a value.
PASSWORDS = (
    r"pass(?:word|wd|phrase|code)|(?<![a-z])pass|pwd|(?<![a-z])pw|identified by|hasło|contraseña|"
    r"mots? de passe|passwort|kennwort|wachtwoord|senha|code secret|clave secreta|"
    r"пароль|密码|密碼|口令|パスワード|暗証番号|비밀번호"
)
KEYS = (
    r"(?:client|consumer|app|shared)?[ _-]?secret(?:[ _-]?(?:access[ _-]?)?key)?|"
    r"credentials?|webhook[_-]?url|apikey|"
    r"(?:api|access|auth|account|private|signing|encryption|fernet|master|seed|"
    r"license|ssh)[ _-]?key|client-key-data|"
    r"(?:access|auth|refresh|bearer|session|id|bot)?[_-]?token|seed phrase|"
    r"clé (?:secrète|privée|d['’]api|api)|"
    r"api[- ]?schlüssel|geheimschlüssel|clave (?:privada|de api)|chave (?:secreta|"
    r"privada)|密钥|密鑰|シークレットキー"
)
LINK = (
    r"(?:=>|:=|\||%3[AD]|(?<=identified by)(?= )|[=:：]|\b(?:(?:(?:was|is|been) )?"
    r"(?:set|changed|reset|updated) to|is|was|ist|war|lautet|est|es|é|è|wordt|"
    r"(?<=password )to)\b|是|は|为|為|は、)"
)
SUBJECT = r"(?:\s(?:for|of|on|at)\s[\w./@-]{1,64}(?:\s[\w./@-]{1,32})?)?"
"""What a label is for: "password for staging"."""
BLOCK = r" [|>][+-]?\n[ \t]{1,16}"
"""A value of YAML in lines of its own: ``secret: |``."""
CODES = (
    r"\b(?:PIN|TAN|OTP|CVV2?|CVC2?|pin[ -]code|one[- ]time (?:code|password|"
    r"passcode)|(?:verification|security|login|"
    r"confirmation|authentication|access|2fa|mfa) code|einmal(?:code|passwort)|"
    r"(?:bestätigungs|sicherheits)code|"
    r"code de (?:vérification|sécurité|confirmation)|código de (?:verificación|"
    r"seguridad|verificação|segurança))\b|"
    r"код подтверждения|验证码|驗證碼|認証コード|確認コード|인증번호"
)
_PARTS = """
    pass pw identified hasło contraseña kennwort wachtwoord senha secret clave парол 密码 密碼 口令
    パスワード 暗証 비밀번호 credential webhook key token seed clé schlüssel chave 密钥 密鑰
    シークレット
"""
LABEL_PARTS = frozenset(_PARTS.split())
"""Parts of the labels above, in lower case, one in each; a text without any of them is not searched
for labels."""
LABEL_LETTERS = "[abcefghiklmprstvwп密口パ暗비シ]"
"""First letters of the labels, which a regular expression tests much faster than the labels
themselves."""
_STRENGTH = re.compile(r"[\d\W_]")
REFERENCE = re.compile(
    r"[&*]?[A-Za-z_]\w{0,200}(?:(?:\.|->|::)[A-Za-z_]\w{0,200}){0,20}[\[(].*"  # a call, an index
    r"|[&*]?[A-Za-z_]\w{0,200}(?:(?:\.|->|::)[A-Za-z_]\w{0,200}){1,20}|[^\W\d]+"  # a name
    r"|\$(?:[A-Z_]+\b|[{(]).*|%[\w(].*|[<{\[/~].*|\.{2,}.*"  # a variable, a path
    r"|![A-Za-z]{2,16}"  # a tag of YAML
    r"|(?i:your)[-_ ].*|\*{3,}.*|x{4,}.*",  # a placeholder
    re.DOTALL,
)
"""A reference or placeholder, which is not a secret itself."""
_PLAIN_WORDS = """
    string number integer boolean object bytes varchar optional required password passwd secret
    token hidden text undefined missing include omit same-origin enabled disabled input field true
    false null none str int bool float any expired invalid valid wrong correct changed reset unknown
    empty redacted yes/no on/off y/n pass passed fail failed skip skipped done open closed
"""
_NOT_SECRETS = frozenset(_PLAIN_WORDS.split())


def replace_assigned(match: re.Match[str]) -> str:
    """Return the assignment without its value if that may be a secret, and not a name, a type or a
    count.
    """
    word = (match["quoted"] or match["bare"]).rstrip(".!?:)")
    first = word.partition("|")[0].lower()  # "required|min:8" is a rule of a form.
    if len(set(word)) > 1 and first not in _NOT_SECRETS and _looks_secret(match, word):
        return f"{match['keep']}[secret]"
    return match[0]


def _looks_secret(match: re.Match[str], word: str) -> bool:
    linked = match["linked"].strip()
    label = match["keep"]
    if word.isidentifier() and not word.isalpha() and label.lower().find(word.lower()) >= 0:
        return False  # A name for itself: {"access_token": "access_token"}.
    if (
        _TEST_RESULT.match(label)
        and match.string[: match.start()][-1:] not in ("_", "-")
        and (linked == "|" or "/" in word or not re.search(r"\d", word))
    ):
        return False
    # "The password is ..." may go on as a sentence.
    if linked == "|" or re.match(r"[a-zéè]", linked, re.IGNORECASE):
        if re.match(r"(?=\S{4})[^\W_]\S{0,500}?[\dA-Z]|[!#-.]\S{0,500}?[\dA-Z]", word):
            return True
        return linked != "|" and _ends_sentence(match, word)
    if _of_letters(match, word):
        return True
    if match["quoted"]:
        name = word.isidentifier() and not match["password"] and not _STRENGTH.search(word)
        return not name and (
            (word.isidentifier() and not word.startswith("YOUR_"))
            or " " in word
            or not REFERENCE.fullmatch(word)
        )
    if _ATTRIBUTE.search(match.string[max(0, match.start() - 5) : match.start()]) and (
        word.isidentifier()
    ):
        return False
    if match["password"] and word.isalpha() and word.islower():
        following = match.string[match.end() : match.end() + 5]
        is_tight = label.endswith("=") and not re.match(_OPERATOR, following)
        return is_tight or not re.match(r" [a-z]", following)
    if REFERENCE.fullmatch(word) and not (match["password"] and _random(word)):
        return False
    return bool(match["password"]) or (not word.isdigit() and bool(re.search(r"\d", word)))


# Before a label, by which a bare value is a name: `self.password = hashed`.
_ATTRIBUTE = re.compile(r"\b(?:self|this|cls)\.\Z")
# What follows a name in code: `password=value or None`.
_OPERATOR = r" (?:if|or|and|else|for|in|is|not)\b"
# What a test runner prints (`PASS: test_name`), which is not the label of a password.
_TEST_RESULT = re.compile(r"PASS\b")
# A variable in a file of settings or a shell, which holds no name of another variable.
_CONFIGURED = re.compile(r"[A-Z][A-Z0-9_]{2,63}[\"']?\s?=[\"']?\Z")
# How "the password is ..." goes on where it says something of the password.
_OF_SENTENCE = re.compile(
    r".*(?:ed|ing|(?<!f)ly|able|ible|ful|less|ous|(?<!f)ish|ial|ical|onal|ual|eric|atic|etic|"
    r"word|phrase|token|secret|(?<![nr])key|code)\Z"
    r"|(?:wrong|(?:in)?correct|right|(?:in)?valid|weak|strong|short|long|longer|shorter|empty|null|"
    r"none|blank|(?:un)?set|(?:un)?known|public|private|temporary|same|(?:un)?safe|(?:in)?secure|fine|"
    r"good|bad|okay|gone|new|old|stale|fresh|ready|(?:un)?clear|easy|hard|difficult|"
    r"case-sensitive|plain|random|unique|simple|complex|optional|mandatory|necessary|missing|"
    r"(?:any|every|no|some)?where|here|there|what|which|when|this|that|then|just|only|already|again|"
    r"always|often|twice|once|each|part|above|below|inside|outside|elsewhere|yours|ours|mine|"
    r"theirs|text|plaintext|(?:any|every|no|some)thing|(?:upper|lower)case|case|sensitive|"
    r"default|stuff|rubbish|garbage|nonsense|wrongly|typo|false|true|real|fake|dead|alive|live|"
    r"reset|too|not|never|still|also|different|present|absent|(?:ir)?relevant|redundant|constant|"
    r"(?:in)?consistent|persistent|(?:in)?sufficient|permanent|transparent|important|current|"
    r"recent|up-to-date|out-of-date|lost|hidden|shown|given|taken|sent|kept|stolen|broken|written|"
    r"stuck|held|left|found|built|bound|forgotten|frozen|chosen|drawn|thrown|sworn|worn|torn|hung|"
    r"spelt|told|sold|meant|spent|split|shut|caught|taught|bought|brought|thought|understood)\Z",
    re.IGNORECASE,
)
# How the same goes on in German, French, Spanish, Portuguese, Italian and Dutch.
_OF_FOREIGN_SENTENCE = re.compile(
    r"ge\w{2,60}(?:t|en)\Z|(?:un)?(?:falsch|richtig|korrekt|leer|sicher|schwach|stark|kurz|lang|"
    r"bekannt|geheim|veraltet|nötig|pflicht|klar)\Z|(?:ver|be|zer|ent|er|ab|an|zu|über)\w{2,60}"
    r"(?:t|en)\Z|\w{1,60}(?:lich|ig|bar|sam|haft|iert|los|[éáóíú][es]{0,2}|[aeu]ble|oires?|eux|"
    r"euse|aires?|ecte?|ides?|[aiu]d[oa]s?|[áí]vel|ori[oa]|uro|ura|et[oa]|ct[oa]|ss[oa]|át[oa])\Z"
    r"|(?:faux|fausse|trop|court|vide|faible|bonne?|mauvais|perdu|connu|inconnu|requis|débil|"
    r"larg[oa]|cort[oa]|vací[oa]|igual|fácil|difícil|sempre|siempre|toujours|immer|onjuist|fout|"
    r"verlopen|leeg|juist)\Z",
    re.IGNORECASE,
)
# A label that is an ordinary word too: "the secret is patience".
_NOUN = re.compile(r"(?:secret|token|credentials?)\W{0,6}\Z", re.IGNORECASE)
_UNPRONOUNCEABLE = re.compile(r"[bcdfghjklmnpqrstvwxz]{5}|abcd|qwer|asdf", re.IGNORECASE)
_HUMP = re.compile(r"[A-Z]+[a-z]*|[a-z]+")
# Words joined by hyphens from which on they are a passphrase, and letters of each.
_FEWEST_WORDS = 3
_CHANGES = re.compile(r"\b(?:chang|set|reset|updat|rotat|switch)", re.IGNORECASE)
# Characters before "password to ..." in which the verb is looked for.
_LONGEST_CLAUSE = 60


def is_about_a_label(word: str) -> bool:
    """Return whether a word behind a label says something of it, or stands for a value."""
    return word.lower() in _NOT_SECRETS or bool(
        _OF_SENTENCE.match(word) or _PLACEHOLDER.match(word)
    )


def _ends_sentence(match: re.Match[str], word: str) -> bool:
    """Return whether a word of letters ends its sentence and says nothing of the label before it,
    so that it is the value: "the password is abcdefgh".
    """
    linked = match["linked"].strip().lower()
    after = match.string[match.end() : match.end() + 2]
    least = 5 if match["password"] else 8
    parts = word.split("-")
    if len(word) < least or not all(part.isalpha() for part in parts):
        return False
    if len(parts) > 1 and (len(parts) < _FEWEST_WORDS or min(map(len, parts)) < _FEWEST_WORDS):
        return False  # "case-sensitive", "end-to-end".
    if linked == "to":
        clause = match.string[max(0, match.start() - _LONGEST_CLAUSE) : match.start()]
        if not _CHANGES.search(clause):
            return False  # "The password to remember".
    label = match["keep"][: match.start("linked") - match.start()]
    if _NOUN.search(label) and not _UNPRONOUNCEABLE.search(word):
        return False
    ends = (
        not after[:1].isspace()
        or after.strip() == ""
        or match["bare"] != word
        or (bool(match["password"]) and bool(_NEXT_CLAUSE.match(match.string, match.end())))
    )
    is_foreign = linked not in ("is", "was", "to", "lautet") and " " not in linked
    return (
        ends
        and not _OF_SENTENCE.match(parts[-1])
        and not (is_foreign and (not match["password"] or _OF_FOREIGN_SENTENCE.match(word)))
    )


def _of_letters(match: re.Match[str], word: str) -> bool:
    """Return whether a value of letters alone is a secret by where it stands."""
    if not re.fullmatch(r"[A-Za-z_-]{6,512}", word) or _PLACEHOLDER.match(word):
        return False
    after = match.string[match.end() : match.end() + 1]
    begin = match.string.rfind("\n", 0, match.start()) + 1
    before = match.string[begin : match.end("keep")]
    if match["quoted"]:
        if _IN_SHELL.search(before):
            return True
        # The name of a mode or a kind is short, and may have a hyphen.
        least = _LONG_NAME if "token" in before[-20:].lower() else _SHORT_SECRET
        return len(word) >= least and word.isalpha() and word.islower()
    if _CONFIGURED.search(before) or _is_scrambled(word):
        return True
    if after in ('"', "'"):
        before = before.rpartition(after)[2]  # A header or a setting in quotes.
    before = before.rpartition("&")[2]  # A field of a form.
    # As a line of YAML or of settings, without a blank before "=", as code has.
    return (
        after in ("", "\n", "\r", '"', "'", "&")
        and len(word) >= 8
        and word.isalpha()
        and word.islower()
        and _LINE.fullmatch(before) is not None
    )


# A variable of PowerShell, a shell, or Windows.
_IN_SHELL = re.compile(r"(?:\$env:|\bexport\s|\bsetx?\s)[\w.]{1,64}\s{0,2}=\s{0,2}[\"']?\Z")
# A line of settings up to its value.
_LINE = re.compile(r"\s*(?:- )?[\w./:@-]{3,128}(?:=|: ?(?:[|>][+-]?\s*)?)")
_NEXT_CLAUSE = re.compile(r"\s(?:and|but|or|so)\b")
# Letters from which a quoted value is no name of a mode or a kind (`sameorigin`);
_SHORT_SECRET = 12
# after "token", which is a word of grammars too, these many.
_LONG_NAME = 16
_PLACEHOLDER = re.compile(
    r"(?i:your|my|the|some|change|example|dummy|fake|test|sample|placeholder|insert|replace|put|"
    r"x{3,}|a{4,}|required|optional|undefined|string|redacted|none|null)"
    r"|.{0,64}(?i:secret|password|token|key|session|ident|credential|auth|redacted)"
)


def _is_scrambled(word: str) -> bool:
    """Return whether a long value is no word and no name made of words: it has no vowels for long,
    or most of its humps have none.
    """
    if len(word) < _SHORT_SECRET or not word.isalpha():
        return False
    if word.islower():
        return _UNPRONOUNCEABLE.search(word) is not None
    humps = _HUMP.findall(word)
    mute = [hump for hump in humps if len(hump) >= 3 and not re.search(r"(?i)[aeiouy]", hump)]
    return 2 * len(mute) > len(humps)


def _random(word: str) -> bool:
    """Return whether letters change their case more often than in a camelCase name."""
    return (
        word.isalpha()
        and len(word) >= 8
        and len(word) < 2.5 * len(re.findall(r"[A-Z]+[a-z]*|[a-z]+", word))
    )
