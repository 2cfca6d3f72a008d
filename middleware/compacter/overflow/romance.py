"""The table of the detector, continued: French, Spanish, Portuguese and Italian.

Spanish and Portuguese share most stems, and so their rows. As in ``european`` there are no accents,
and words shared with English are in ``limits``.
"""

from __future__ import annotations

from typing import Final

from compacter.overflow.table import Row

_FRENCH: Final = (
    Row(
        "context: French",
        r"\b(?:fenetre|longueur|taille|limite|capacite) (?:maximale )?(?:de |du )?contexte\b"
        r"|\bcontexte (?:est )?(?:plein|sature|maximal)",
        "Le tout dépasse la fenêtre de contexte",
    ),
    Row(
        "subject: French",
        r"\b(?:entree|invite|contexte|historique|discussion|echange|transcription)\b",
        "L'historique est trop long",
    ),
    Row(
        "request: French",
        r"\b(?:requete|demande|texte|fichier|contenu)\b",
        "La requête est trop longue pour le modèle",
    ),
    Row(
        "exceed: French",
        r"\bdepass|\b(?:plus (?:long|grand)\w{0,2}|superieure?) (?:que|aux?|a)\b|\bau-dela\b",
        "Le prompt dépasse la limite du modèle",
    ),
    Row(
        "too long: French",
        r"\btrop (?:long|grand|gros|volumineu)",
        "La conversation est trop longue",
    ),
    Row("token: French", r"\bjetons?\b", "Le prompt dépasse la limite de jetons"),
    Row("too many: French", r"\btrop de (?:tokens|jetons)\b", "Trop de jetons"),
    Row(
        "full: French",
        r"\b(?:pleine?|saturee?|epuisee?)\b|\batteint|\bne tien(?:t|nent) pas\b",
        "La fenêtre de contexte est pleine",
    ),
    Row(
        "limit: French",
        r"\b(?:maxima|autorise|permis|plafond)",
        "Les tokens dépassent le plafond",
    ),
    Row(
        "length: French",
        r"\b(?:longueur|taille)\b",
        "Le prompt dépasse la taille autorisée",
    ),
    Row(
        "bound: French",
        r"\bne (?:doit|doivent|peut|peuvent) pas (?:depasser|exceder)\b|\bau (?:plus|maximum) \d",
        "L'entrée a au plus 8192 tokens",
    ),
    Row(
        "reduce: French",
        r"\b(?:redui|raccourc|abreg)",
        "Veuillez raccourcir la conversation.",
    ),
    Row(
        "output: French",
        r"\b(?:sortie|reponse|generee?s?)\b",
        "La sortie dépasse la limite de jetons",
    ),
    Row(
        "handled: French",
        r"\b(?:tronque|compresse|resume|decoupe|scinde|omi|ignore|supprime|retire|elague|coupe"
        r"|efface|reduit|abaisse|ajuste|archive|masque|deplace|conserve|replie)e?s?\b"
        r"|\bautomatiquement\b"
        r"|\bsera (?:lue?|traitee?|envoyee?) (?:en plusieurs|par) \w"
        r"|\bnouvelle tentative avec\b|\bnouvel essai avec\b",
        "La conversation a été tronquée : elle dépasse la fenêtre de contexte",
    ),
    Row(
        "not handled: French",
        r"\b(?:toujours|encore|malgre|veuillez|doit|doivent|impossible|pas pu)\b",
        "La fenêtre de contexte est dépassée, le texte doit être résumé",
    ),
    Row(
        "other error: French",
        r"\bpar (?:minute|heure|jour|mois)\b|\blimite de (?:debit|taux|requetes)\b"
        r"|\btrop de requetes\b|\b(?:journali|quotidien|hebdomadaire|mensuel)|\bsolde\b"
        r"|\bexpire\b|\bpatient(?:er|ez)\b",
        "Limite de jetons par minute dépassée",
    ),
    Row(
        "other unit: French",
        r"\b(?:fichiers|images)\b|\d messages\b",
        "L'entrée est trop longue : maximum 5 fichiers",
    ),
    Row(
        "other thing: French",
        r"\bne depasse(?:nt)? pas\b|\b(?:pour|afin de) ne pas depasser\b|\bsans depasser\b"
        r"|\bpour respecter\b|\b(?:risque\w{0,2} de|pourrait) depasser\b"
        r"|\bcontextes? concurrents?\b"
        r"|^\W{0,3}si .{0,80}depass.{0,60}, (?:l'api|le serveur) (?:renvoie|rejette)\b",
        "Le prompt ne dépasse pas la fenêtre de contexte",
    ),
)

_SPANISH_AND_PORTUGUESE: Final = (
    Row(
        "context: Spanish and Portuguese",
        r"\b(?:ventana|longitud|limite|tamano|capacidad|janela|comprimento|tamanho|capacidade)"
        r" (?:maxim[ao] )?(?:d[eo]l? )?contexto\b"
        r"|\bcontexto (?:esta )?(?:llen|chei|agotad|esgotad|permitid|maxim)",
        "Todo eso excede la ventana de contexto",
    ),
    Row(
        "subject: Spanish and Portuguese",
        r"\b(?:entrada|contexto|dialogo|mensajes|conversacion|historial|transcripcion|pregunta"
        r"|mensagens|conversa|historico|transcricao|pergunta)\b",
        "La conversación es demasiado larga",
    ),
    Row(
        "request: Spanish and Portuguese",
        r"\b(?:texto|documento|consulta|solicitud|peticion|mensaje|archivo|contenido"
        r"|solicitacao|requisicao|pedido|mensagem|arquivo|conteudo)\b",
        "El mensaje es demasiado largo para el modelo",
    ),
    Row(
        "exceed: Spanish and Portuguese",
        r"\b(?:exced|sobrepas|rebas|ultrapass|estour)"
        r"|\b(?:mas larg[ao]|mayor|maior|mais long[ao]) (?:do )?que\b",
        "El prompt excede el límite del modelo",
    ),
    Row(
        "too long: Spanish and Portuguese",
        r"\b(?:demasiado|muy|muito) (?:larg|long|grand|extens)"
        r"|\b(?:long|grande|extens)[oa]?s? demais\b",
        "O chat é longo demais",
    ),
    Row(
        "too many: Spanish and Portuguese",
        r"\b(?:demasiados|muitos) tokens\b|\btokens demais\b",
        "Demasiados tokens",
    ),
    Row(
        "full: Spanish and Portuguese",
        r"\b(?:llen[ao]|chei[ao]|agotad[ao]|esgotad[ao]|ating\w{1,3}|na?o cabe)\b|\balcanz",
        "La ventana de contexto está llena",
    ),
    Row(
        "limit: Spanish and Portuguese",
        r"\b(?:maxim[ao]|permitid[ao]|tope)\b",
        "Los tokens exceden el tope",
    ),
    Row(
        "length: Spanish and Portuguese",
        r"\b(?:longitud|tamano|comprimento|tamanho|extensao)\b",
        "El prompt excede la longitud permitida",
    ),
    Row(
        "bound: Spanish and Portuguese",
        r"\bna?o (?:puede|debe|pode|deve)n? (?:exceder|superar|ultrapassar)\b"
        r"|\b(?:como|no) maximo \d",
        "La entrada tiene como máximo 8192 tokens",
    ),
    Row(
        "reduce: Spanish and Portuguese",
        r"\b(?:reduz|acort|encurt|diminu)",
        "Acorte la conversación.",
    ),
    Row(
        "output: Spanish and Portuguese",
        r"\b(?:razonamiento|raciocinio|salida|respuesta|saida|resposta|generad[ao]s?"
        r"|gerad[ao]s?)\b",
        "La salida excede el límite de tokens",
    ),
    Row(
        "handled: Spanish and Portuguese",
        r"\b(?:truncad|recortad|cortad|comprimid|compactad|resumid|dividid|omitid|descartad"
        r"|eliminad|borrad|removid|ignorad|saltad|pulad|acortad|encurtad|reducid|reduzid|ajustad"
        r"|archivad|arquivad|ocultad"
        r"|movid|conservad|mantid)[ao]s?\b"
        r"|\b(?:conservaron|mantuvieron|mantivemos|conservamos|usando) (?:so(?:lo|mente)|apenas) "
        r"|\bse (?:procesara|leera|enviara) por \w|\bsera (?:lid|processad)[ao] (?:por|em) partes\b"
        r"|\b(?:re-?intentando|intentando de nuevo|tentando novamente) co[nm]\b"
        r"|\bse (?:ha )?(?:trunc|recort|comprim|compact|resum|divid|omit|descart|elimin)"
        r"|\bautomaticamente\b",
        "La conversación fue truncada: excede la ventana de contexto",
    ),
    Row(
        "not handled: Spanish and Portuguese",
        r"\b(?:todavia|aun|sigue|a pesar|ainda|mesmo|apesar|debe|deve|puede|pode|no pudo)\b",
        "La conversación excede la ventana de contexto y debe ser resumida",
    ),
    Row(
        "other error: Spanish and Portuguese",
        r"\bpor (?:minuto|hora|dia|mes)\b|\blimite de (?:tasa|velocidad|taxa)\b"
        r"|\b(?:demasiadas|muitas) (?:solicitudes|peticiones|solicitacoes|requisicoes)\b"
        r"|\b(?:diari[ao]|semanal|mensual|mensal)|\bcuota\b|\bcota\b|\bsaldo\b|\baguarde\b"
        r"|\b(?:caducad|expirad)[ao]\b",
        "Límite de tokens por minuto excedido",
    ),
    Row(
        "other unit: Spanish and Portuguese",
        r"\d (?:mensajes|mensagens)\b|\b(?:caracteres|imagenes|imagens|paginas)\b|\bar(?:ch"
        r"|qu)ivos?\b(?!.{0,40}\bmodelo)",
        "La entrada es demasiado larga: 5000 caracteres",
    ),
    Row(
        "other thing: Spanish and Portuguese",
        r"\bna?o (?:exced|super|ultrapass)(?:e|a)\b|\bpara na?o (?:exceder|superar|ultrapassar)\b"
        r"|\bpara evitar\b|\bpode?ria (?:exceder|superar|ultrapassar)\b"
        r"|^\W{0,3}s[ie] .{0,80}(?:exced|super|ultrapass).{0,60}, (?:la api|a api|el servidor"
        r"|o servidor) (?:devuelve|rechaza|retorna|rejeita)\b",
        "El prompt no excede la ventana de contexto",
    ),
)

_ITALIAN: Final = (
    Row(
        "context: Italian",
        r"\b(?:finestra|lunghezza|limite|dimensione|capacita) (?:massim[ao] )?(?:di |del )?"
        r"contesto\b"
        r"|\bcontesto (?:e )?(?:pieno|esaurito|massimo)\b",
        "Tutto questo supera la finestra di contesto",
    ),
    Row(
        "subject: Italian",
        r"\b(?:contesto|messaggi|conversazione|cronologia|trascrizione|domanda)\b",
        "La conversazione è troppo lunga",
    ),
    Row(
        "request: Italian",
        r"\b(?:richiesta|testo|messaggio|contenuto)\b",
        "Il messaggio è troppo lungo per il modello",
    ),
    Row(
        "exceed: Romance",
        r"\bsuper[ao]|\becced|\boltrepass|\b(?:maggiore|piu lung[ao]) (?:di|del|della)\b",
        "Il prompt supera il limite del modello",
    ),
    Row("too long: Italian", r"\btroppo (?:lung|grand|estes)", "La chat è troppo lunga"),
    Row("too many: Italian", r"\btroppi token", "Troppi token"),
    Row(
        "full: Italian",
        r"\b(?:pien[ao]|esaurit[ao]|non (?:ri)?entra)\b|\braggiunt",
        "La finestra di contesto è piena",
    ),
    Row(
        "limit: Italian",
        r"\b(?:massim|consentit)",
        "I token superano il massimo",
    ),
    Row(
        "length: Italian",
        r"\b(?:lunghezza|dimensione)\b",
        "Il prompt supera la lunghezza consentita",
    ),
    Row(
        "bound: Italian",
        r"\bnon (?:puo|deve|possono|devono) (?:superare|eccedere)\b|\bal massimo \d",
        "La conversazione ha al massimo 8192 token",
    ),
    Row("reduce: Italian", r"\b(?:ridu[cr]|accorci)", "Accorcia la conversazione."),
    Row(
        "output: Italian",
        r"\b(?:uscita|risposta|generat[aio])\b",
        "La risposta supera il limite di token",
    ),
    Row(
        "handled: Italian",
        r"\b(?:troncat|tagliat|compress|compattat|riassunt|suddivis|omess|scartat|rimoss|saltat"
        r"|eliminat|accorciat|ridott|abbassat|archiviat|nascost|spostat|conservat|mantenut)[aeio]\b"
        r"|\b(?:verra|viene) (?:lett|elaborat)[ao] (?:a|in) (?:blocchi|parti)\b"
        r"|\b(?:nuovo tentativo|riprovo) con\b",
        "La conversazione è stata troncata: supera la finestra di contesto",
    ),
    Row(
        "not handled: Italian",
        r"\b(?:ancora|nonostante|deve|devono|impossibile)\b",
        "La conversazione è stata troncata e supera ancora la finestra di contesto",
    ),
    Row(
        "other error: Italian",
        r"\bal (?:minuto|giorno|mese)\b|\blimite di (?:frequenza|richieste)\b"
        r"|\btroppe richieste\b|\b(?:giornalier|settimanal|mensil)|\bcredito\b|\bscadut[ao]\b",
        "Limite di token al minuto superato",
    ),
    Row(
        "other unit: Italian",
        r"\d messaggi\b|\b(?:caratteri|immagini|pagine)\b",
        "La conversazione è troppo lunga: 5000 caratteri",
    ),
    Row(
        "other thing: Italian",
        r"\bnon (?:super|ecced)[ae]\b|\bper non (?:superare|eccedere)\b|\bpotre(?:sti"
        r"|bbe) superare\b"
        r"|^\W{0,3}se .{0,80}super.{0,60}, (?:l'api|il server) (?:restituisce|rifiuta)\b",
        "Il prompt non supera la finestra di contesto",
    ),
)

ROMANCE: Final[tuple[Row, ...]] = (*_FRENCH, *_SPANISH_AND_PORTUGUESE, *_ITALIAN)
"""Rows of all meanings, as in ``limits`` and ``vetoes``."""
