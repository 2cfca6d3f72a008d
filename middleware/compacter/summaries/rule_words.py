"""Words that forbid, oblige, limit or state a standing preference, in languages other than English."""

from __future__ import annotations

import re

_WORDS = """
    niemals immer höchstens spätestens keinesfalls unbedingt stets ausschließlich frist verboten
    jamais toujours désormais uniquement interdit interdite obligatoire évite évitez nunca jamás
    siempre debes debe deben prohibido prohibida obligatorio evita únicamente sempre deve devem
    proibido proibida obrigatório evite somente apenas mai devi dovete vietato obbligatorio
    evitare nooit altijd uiterlijk hoogstens verboden verplicht никогда всегда нельзя
    обязательно должен должна должны запрещено запрещён исключительно ніколи завжди заборонено
    nigdy zawsze musisz najpóźniej zabronione wyłącznie vždy nikdy nesmíš musíš zakázáno asla
    daima sakın kesinlikle mutlaka yasak yalnızca aldrig alltid måste senast ikke aldri aina μην
    ποτέ πάντα πρέπει απαγορεύεται mindig soha tilos niciodată întotdeauna luôn jangan selalu
    harus dilarang wajib أبدا أبدًا دائما دائمًا يجب ممنوع فقط هرگز همیشه باید לעולם תמיד אסור
    חייב חובה हमेशा कभी ज़रूर अनिवार्य मत केवल
"""
WORDS = frozenset(_WORDS.split())
"""Single words, in lower case."""

_PHRASES = """
    nie wieder; auf keinen fall; du musst; du darfst; du sollst; darf nicht; darf nur; dürfen nicht;
    bitte nur; bitte nie; bitte immer; bitte kein; nur auf; ab jetzt; ab sofort; verwende nur;
    verwende nie; verwende kein; antworte nur; nicht mehr als; budget beträgt; budget ist; muss bis;
    maximal; ohne meine; ne pas; n'utilise pas; n'utilise jamais; il faut; il ne faut pas; tu dois;
    tu ne dois; vous devez; vous ne devez; au plus tard; au maximum; pas plus de; en aucun cas;
    sans mon accord; como máximo; a más tardar; en ningún caso; a partir de ahora; no uses;
    no hagas; no toques; no borres; no envíes; no publiques; no compartas; no modifiques;
    no cambies; no superes; no ejecutes; no escribas; no debe; no puede; no más de; solo usa;
    sin mi; no máximo; em hipótese alguma; a partir de agora; não deve; não use; não faça;
    não envie; não apague; não altere; não mude; não execute; não toque; não pode; sem a minha;
    al massimo; entro e non oltre; d'ora in poi; non usare; non fare; non modificare; non toccare;
    non inviare; non cancellare; non superare; non eseguire; non deve; non più di; senza la mia;
    je moet; je mag niet; gebruik nooit; gebruik altijd; gebruik geen; gebruik alleen; vanaf nu;
    niet meer dan; не используй; не делай; не трогай; не меняй; не удаляй; не отправляй;
    не превышай; не более; не позднее; не позже; не пиши; не должен; не должно; только на;
    с этого момента; ни в коем случае; без моего; nie wolno; nie używaj; nie usuwaj; nie zmieniaj;
    nie więcej niż; co najwyżej; od teraz; nie może; her zaman; en fazla; en geç; bundan sonra;
    får inte; inte mer än; från och med nu; skal altid; må ikke; skal alltid; älä koskaan;
    ei koskaan; không bao giờ; không được; tidak boleh; mulai sekarang; لا تستخدم; لا تقم; لا ترسل;
    لا تحذف; لا تغير; لا تتجاوز; لا تكتب; لا تشارك; אל ת; नहीं करना
"""
PHRASES = tuple(phrase.strip() for phrase in _PHRASES.split(";"))
"""Several words, in lower case."""

_REQUESTS = """
    antworte antwortet frag frage halte verwende benutze schreibe nutze sprich duze sieze bleib bleibe achte
    möchte überschreiten réponds répondez utilise utilisez écris écrivez vouvoie tutoie demande garde responde
    responda escribe escreva habla mantén mantenha pregunta pergunte presupuesto orçamento quiero respondas
    rispondi scrivi parla chiedi mantieni antwoord gebruik schrijf spreek vraag houd bilancio отвечай
    отвечайте используй используйте пиши пишите говори спрашивай бюджет budżet odpowiadaj używaj pisz mów
    pytaj odpovídej používej piš bütçe yanıtları cevapla kullan yaz svara använd skriv svar brug bruk vastaa
    käytä kirjoita απάντα χρησιμοποίησε γράφε válaszolj használj răspunde folosește أجب استخدم اكتب الميزانية
    ענה השתמש כתוב उत्तर प्रयोग लिखो jawab gunakan tulis anggaran
"""
REQUESTS = frozenset(_REQUESTS.split())
"""Words of orders and limits that may last, but need not."""

UNSPACED_REQUEST = re.compile(
    "请用|请以|请保持|请只|回答要|要用|請用|請以|请.{0,6}回答|予算|てください|でください|て下さい|にして|"
    "예산|해 ?주세요|답해|써 ?줘|ตอบ|ใช้|งบ"
)

UNSPACED = re.compile(
    "绝不|绝对不|永远不|从不|不要|不得|不许|不准|禁止|切勿|请勿|务必|必须|一定要|总是|始终|只能|只用|"
    "只使用|不超过|不能超过|截止|预算|今后|以后都"
    "|絕不|絕對不|永遠不|不許|務必|必須|總是|始終|只使用|不超過|預算"
    "|絶対に|決して|必ず|常に|しないで|してはいけない|てはいけません|ないでください|以内|までに|今後は|のみ"
    "|절대|항상|반드시|하지 ?마|마세요|말아|금지|이내|해야|만 사용|앞으로"
    "|ห้าม|เสมอ|ต้อง|อย่า"
)
"""The rules' words in scripts that write words without spaces between them, or join them to others."""
