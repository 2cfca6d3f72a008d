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
    r"(?:=>|:=|\||(?<=identified by)(?= )|[=:：]|\b(?:is|was|ist|war|lautet|est|es|"
    r"é|è|wordt|(?<=password )to)\b|是|は|为|為|は、)"
)
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
    r"[A-Za-z_]\w{0,200}(?:(?:\.|->|::)[A-Za-z_]\w{0,200}){0,20}[\[(].*"  # a call, an index
    r"|[A-Za-z_]\w{0,200}(?:(?:\.|->|::)[A-Za-z_]\w{0,200}){1,20}|[^\W\d]+"  # an attribute, a name
    r"|\$(?:[A-Z_]+\b|[{(]).*|%[\w(].*|[<{\[/~].*|\.{2,}.*"  # a variable, a path
    r"|(?i:your)[-_ ].*|\*{3,}.*|x{4,}.*",  # a placeholder
    re.DOTALL,
)
"""A reference or placeholder, which is not a secret itself."""
_PLAIN_WORDS = """
    string number integer boolean object bytes varchar optional required password passwd secret
    token hidden text undefined missing include omit same-origin enabled disabled input field true
    false null none str int bool float any expired invalid valid wrong correct changed reset unknown
    empty redacted
"""
_NOT_SECRETS = frozenset(_PLAIN_WORDS.split())


def replace_assigned(match: re.Match[str]) -> str:
    """Return the assignment without its value if that may be a secret, and not a name, a type or a
    count.
    """
    word = (match["quoted"] or match["bare"]).rstrip(".!?:)")
    if len(set(word)) > 1 and word.lower() not in _NOT_SECRETS and _looks_secret(match, word):
        return f"{match['keep']}[secret]"
    return match[0]


def _looks_secret(match: re.Match[str], word: str) -> bool:
    linked = match["linked"].strip()
    label = match["keep"]
    if (
        _TEST_RESULT.match(label)
        and match.string[: match.start()][-1:] not in ("_", "-")
        and (linked == "|" or "/" in word or not re.search(r"\d", word))
    ):
        return False
    # "The password is ..." may go on as a sentence.
    if linked == "|" or (linked.isascii() and linked.isalpha()):
        if re.match(r"(?=\S{4})[^\W_]\S{0,500}?[\dA-Z]|[!#-.]\S{0,500}?[\dA-Z]", word):
            return True
        return linked.lower() in ("is", "was") and _ends_sentence(match, word)
    if _of_letters(match, word):
        return True
    if match["quoted"]:
        name = word.isidentifier() and not match["password"] and not _STRENGTH.search(word)
        return not name and (
            (word.isidentifier() and not word.startswith("YOUR_"))
            or " " in word
            or not REFERENCE.fullmatch(word)
        )
    if match["password"] and word.isalpha() and word.islower():
        return not re.match(r" [a-z]", match.string[match.end() : match.end() + 2])
    if REFERENCE.fullmatch(word) and not (match["password"] and _random(word)):
        return False
    return bool(match["password"]) or (not word.isdigit() and bool(re.search(r"\d", word)))


_TEST_RESULT = re.compile(r"PASS\b")
"""What a test runner prints (``PASS: test_name``), which is not the label of a password."""
_CONFIGURED = re.compile(r"[A-Z][A-Z0-9_]{2,63}[\"']?\s?=[\"']?\Z")
"""A variable in a file of settings or a shell, which holds no name of another variable."""
_OF_SENTENCE = re.compile(
    r".*(?:ed|ing|ly|able|ible|ful|less|ous|ish|ent|ant|word|phrase|token|secret|key|code)\Z"
    r"|(?:wrong|(?:in)?correct|right|invalid|valid|weak|strong|short|long|longer|shorter|empty|null|none|"
    r"unset|unknown|known|public|private|temporary|same|safe|secure|fine|good|bad|okay|gone|lost|"
    r"new|old|stale|ready|hidden|shown|given|taken|sent|kept|stolen|broken|written|case-sensitive|"
    r"plain|random|unique|simple|complex|optional|mandatory|missing|here|there|above|below|"
    r"elsewhere|inside|outside|yours|mine|theirs|text|plaintext|something|anything|nothing|"
    r"everything|case|sensitive|default|stuff|rubbish|garbage|nonsense|wrongly|typo|"
    r"false|true|real|fake|dead|alive|live|stored|set|reset|too|not|never|still|also)\Z",
    re.IGNORECASE,
)
"""How "the password is ..." goes on where it says something of the password."""


def _ends_sentence(match: re.Match[str], word: str) -> bool:
    """Return whether a word of letters ends its sentence and says nothing of the label before it,
    so that it is the value: "the password is abcdefgh".
    """
    after = match.string[match.end() : match.end() + 2]
    least = 5 if match["password"] else 8
    return (
        len(word) >= least
        and word.isalpha()
        and (
            not after[:1].isspace()
            or after.strip() == ""
            or match["bare"] != word
            or (bool(match["password"]) and bool(_NEXT_CLAUSE.match(match.string, match.end())))
        )
        and not _OF_SENTENCE.match(word)
    )


def _of_letters(match: re.Match[str], word: str) -> bool:
    """Return whether a value of letters alone is a secret by where it stands."""
    if not re.fullmatch(r"[A-Za-z_-]{6,512}", word) or _PLACEHOLDER.match(word):
        return False
    whole_line = match.string[match.end() : match.end() + 1] in ("", "\n", "\r")
    begin = match.string.rfind("\n", 0, match.start()) + 1
    before = match.string[begin : match.end("keep")]
    if match["quoted"]:
        # The name of a mode or a kind is short, and may have a hyphen.
        least = _LONG_NAME if "token" in before[-20:].lower() else _SHORT_SECRET
        return len(word) >= least and word.isalpha() and word.islower()
    if _CONFIGURED.search(before):
        return True
    # As a line of YAML or of settings, without a blank before "=", as code has.
    return (
        whole_line
        and len(word) >= 8
        and word.isalpha()
        and word.islower()
        and re.fullmatch(r"\s*(?:- )?[\w.-]{3,64}(?:=|: ?)", before) is not None
    )


_NEXT_CLAUSE = re.compile(r"\s(?:and|but|or|so)\b")
_SHORT_SECRET = 12
"""Letters from which a quoted value is no name of a mode or a kind (``sameorigin``);"""
_LONG_NAME = 16
"""after "token", which is a word of grammars too, these many."""
_PLACEHOLDER = re.compile(
    r"(?i:your|my|the|some|change|example|dummy|fake|test|sample|placeholder|insert|replace|put|"
    r"x{3,}|a{4,}|required|optional|undefined|string|redacted|none|null)"
    r"|.{0,64}(?i:secret|password|token|key|session|ident|credential|auth|redacted)"
)


def _random(word: str) -> bool:
    """Return whether letters change their case more often than in a camelCase name."""
    return (
        word.isalpha()
        and len(word) >= 8
        and len(word) < 2.5 * len(re.findall(r"[A-Z]+[a-z]*|[a-z]+", word))
    )
