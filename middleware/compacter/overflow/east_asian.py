"""The table of the detector, continued: Chinese, Japanese and Korean.

These scripts put no spaces between words, so that a pattern has no word boundaries, and a word
must not be a part of an unrelated one.
"""

from __future__ import annotations

from typing import Final

from compacter.overflow.table import Row

_CHINESE: Final = (
    Row(
        "context: Chinese",
        r"(?:上下文|文本)的?(?:最大)?(?:长度|窗口|视窗|大小|上限|限制|容量|視窗|長度)"
        r"|最大上下文|上下文(?:已满|已滿|溢出|超)|序列长度",
        "文本长度超限",
    ),
    Row(
        "subject: Chinese",
        r"输入|提示词|上下文|对话|消息|历史|会话|聊天记录|问题"
        r"|輸入|提示詞|訊息|歷史|對話|聊天記錄",
        "对话过长",
    ),
    Row(
        "request: Chinese",
        r"请求|內容|内容|文本|文档|文件|請求",
        "请求过长，模型无法处理",
    ),
    Row("token: Chinese", r"词元|令牌|詞元", "令牌超出上限"),
    Row("model: Chinese", r"模型", "请求过长，模型无法读取"),
    Row(
        "exceed: Chinese",
        r"超过|超出|超限|大于|多于|長於|超過|大於",
        "超出上下文窗口",
    ),
    Row("too long: Chinese", r"[过太超][长大]|過長|太長|過大", "输入过长"),
    Row(
        "too many: Chinese",
        r"(?:tokens?|令牌|词元|詞元)(?:数量?|數)? ?(?:过多|太多|過多)",
        "输入的 token 过多",
    ),
    Row(
        "full: Chinese", r"已满|已滿|已达|达到|達到|已達|用尽|耗尽|放不下|装不下", "上下文窗口已满"
    ),
    Row("limit: Chinese", r"上限|限制|最大|最长|最多|允许|允許|最長", "token 超过限制"),
    Row("length: Chinese", r"长度|長度", "对话已达到长度上限"),
    Row(
        "bound: Chinese",
        r"(?:不能|不得|不可|不)超过|(?:应|必须|需)小于|不能超過|不得超過",
        "输入 token 必须小于 8192",
    ),
    Row("reduce: Chinese", r"减少|缩短|压缩|精简|缩减|縮短|減少|壓縮|精簡", "请缩短输入"),
    Row("output: Chinese", r"输出|生成|回复|回答|輸出|回覆", "输出超过最大 token 限制"),
    Row(
        "handled: Chinese",
        r"(?:已(?![满滿达達])|被|自动|自動|正在|开始|执行|触发)[^，。,（(]{0,5}(?:截断|截取|裁剪|压缩|总结|摘要"
        r"|切分|拆分|分割|跳过|丢弃|删除|移除|清空|省略|忽略|截斷|壓縮|略過|刪除|重试|重試|精简|缩短|分批)"
        r"|(?:截断|压缩|跳过|丢弃|删除|省略|裁剪)了",
        "超出上下文窗口，已自动截断",
    ),
    Row(
        "not handled: Chinese",
        r"仍|依然|无法|不应|無法|失败|失敗|不能再",
        "超出上下文窗口，自动压缩后仍放不下",
    ),
    Row(
        "other error: Chinese",
        r"频繁|限流|限速|速率|并发|稍后再?试|稍後再?試|每(?:分钟|秒|天|日|月|分鐘)|[rt]pm ?超"
        r"|配额|额度|余额|欠费|套餐|費用|费用|配額|額度|餘額"
        r"|令牌已?(?:过期|失效|无效)|鉴权|认证失败|月度|今日",
        "每分钟 token 超过上限",
    ),
    Row(
        "other unit: Chinese",
        r"字符|个字|字节|\d ?(?:张|个文件|轮|行|条|字)|(?:图片|图像|文件|工具|函数|轮次)"
        r"(?:数|个数|太多|过多|过大|大小)|字元|個字",
        "输入过长：最多 5000 字符",
    ),
    Row(
        "other thing: Chinese",
        r"(?:名称|昵称|描述|标题|字段|用户名|密码|文件名|参数名)(?:长度|输入)?"
        r"(?:过长|太长|超过|超出|不能超过)"
        r"|(?:未|没有|沒有|并未)超|(?:避免|防止|以防)",
        "提示词的名称过长",
    ),
)

_JAPANESE: Final = (
    Row(
        "context: Japanese",
        r"コンテキストの?(?:最大)?(?:長|ウィンドウ|サイズ|上限|制限|容量)"
        r"|最大コンテキスト",
        "コンテキスト長を超えています",
    ),
    Row(
        "subject: Japanese",
        r"入力|プロンプト|コンテキスト|会話|メッセージ|履歴|対話|質問|チャット|スレッド",
        "会話が長すぎます",
    ),
    Row(
        "request: Japanese",
        r"リクエスト|テキスト|文書|ドキュメント|ファイル|文章|要求",
        "リクエストが長すぎます、モデル",
    ),
    Row("token: Japanese", r"トークン", "トークンが上限を超えています"),
    Row("model: Japanese", r"モデル", "このモデルにはリクエストが長すぎます"),
    Row(
        "exceed: Japanese",
        r"超え|超過|上回|オーバー|を越え",
        "コンテキストウィンドウを超えました",
    ),
    Row("too long: Japanese", r"長すぎ|大きすぎ|長過ぎ", "プロンプトが長すぎます"),
    Row("too many: Japanese", r"トークン数?が多すぎ", "トークンが多すぎます"),
    Row(
        "full: Japanese",
        r"いっぱい|達し|収まり|収まら|満杯",
        "コンテキストウィンドウがいっぱいです",
    ),
    Row("limit: Japanese", r"制限|以内|まで", "トークンが制限を超過"),
    Row("length: Japanese", r"長さ|サイズ|会話が上限", "会話は長さの上限に達しました"),
    Row("bound: Japanese", r"以(?:下|内)(?:である|にし)|未満", "入力トークンは 8192 未満です"),
    Row("reduce: Japanese", r"減ら|短く|短縮し", "入力を短くしてください"),
    Row("output: Japanese", r"出力|生成|回答|応答", "出力トークンが上限を超えました"),
    Row(
        "handled: Japanese",
        r"(?:切り詰め|切り捨て|圧縮|要約|分割|省略|スキップ|削除|除外|短縮)"
        r"(?:し(?:ました|ます|ています|た|て再試行|て続行)|され|済|ました|ます|られ|実行)"
        r"|は省略|ため省略|のみを?使用し|版を使用し|自動的に|に切り替え(?:ます|ました)",
        "コンテキスト長を超えたため要約しました",
    ),
    Row(
        "not handled: Japanese",
        r"それでも|まだ|でき(?:ません|ない)|失敗",
        "要約しましたが、まだコンテキスト長を超えています",
    ),
    Row(
        "other error: Japanese",
        r"毎分|分あたり|(?:1|一)(?:分|日|時間)(?:間|あたり|の)|レート制限|しばらくして|頻繁|クォータ"
        r"|残高|利用枠|今月|有効期限",
        "1分あたりのトークンが上限を超えました",
    ),
    Row(
        "other unit: Japanese",
        r"文字|\d ?(?:[枚件通]|ページ)|画像|バイト|ファイル(?!.{0,20}モデル)",
        "入力が長すぎます（200文字まで）",
    ),
    Row(
        "other thing: Japanese",
        r"超え(?:てい)?(?:ない|ません)|超過し(?:ない|ません)",
        "プロンプトはコンテキスト長を超えていません",
    ),
)

_KOREAN: Final = (
    Row(
        "context: Korean",
        r"(?:컨텍스트|문맥) ?(?:최대 )?(?:길이|윈도우|창|크기|한도|제한|용량)|최대 컨텍스트",
        "컨텍스트 창을 넘었습니다",
    ),
    Row(
        "subject: Korean",
        r"입력|프롬프트|컨텍스트|대화|메시지|기록|질문|채팅",
        "대화가 너무 깁니다",
    ),
    Row("request: Korean", r"요청|텍스트|문서|파일|본문", "요청이 너무 깁니다, 모델"),
    Row("token: Korean", r"토큰", "토큰 한도를 초과했습니다"),
    Row("model: Korean", r"모델", "모델에 비해 요청이 너무 깁니다"),
    Row(
        "exceed: Korean",
        r"초과|넘었|넘습|넘어|넘는|보다 (?:길|깁|크|많)",
        "컨텍스트 창을 넘었습니다",
    ),
    Row("too long: Korean", r"너무 ?(?:길|깁|긴|큽|크)", "메시지가 너무 깁니다"),
    Row("too many: Korean", r"토큰이? 너무 많", "토큰이 너무 많습니다"),
    Row("full: Korean", r"가득|도달|꽉 ?[찼차]", "컨텍스트 창이 가득 찼습니다"),
    Row("limit: Korean", r"한도|제한|최대|허용|상한|이내", "토큰이 제한을 초과했습니다"),
    Row("length: Korean", r"길이|크기", "대화가 최대 길이에 도달했습니다"),
    Row(
        "bound: Korean",
        r"(?:이하|미만)(?:여야|이어야)",
        "입력 토큰은 8192 이하여야 합니다",
    ),
    Row("reduce: Korean", r"줄여|줄이|짧게", "입력을 줄여 주세요"),
    Row("output: Korean", r"출력|응답|답변|생성", "출력 토큰이 한도를 초과했습니다"),
    Row(
        "handled: Korean",
        r"잘렸|잘립|잘라냈|건너뛰|건너뜁|건너뜀"
        r"|(?:압축|요약|분할|생략|삭제|제거|축소)(?:했|하였|하고|합니다|되|됐|됩|함|됨|중)"
        r"|더 작게 분할|자동으로|재시도합니다",
        "컨텍스트 길이를 초과하여 대화를 요약했습니다",
    ),
    Row(
        "not handled: Korean",
        r"여전히|아직|(?:할|줄일) 수 없|실패|하세요",
        "대화를 요약했지만 여전히 컨텍스트 길이를 초과합니다",
    ),
    Row(
        "other error: Korean",
        r"분당|속도 제한|잠시 후|요청이 너무 많|할당량|잔액|크레딧|만료|유효하지|월간|월 토큰|일일",
        "분당 토큰 한도를 초과했습니다",
    ),
    Row(
        "other unit: Korean",
        r"이미지|글자|\d ?[자장]\b|바이트|파일(?!.{0,20}모델)",
        "입력이 너무 깁니다: 5000 글자",
    ),
    Row(
        "other thing: Korean",
        r"초과하지 않|초과 방지|넘지 않",
        "프롬프트가 컨텍스트 길이를 초과하지 않습니다",
    ),
)

_EMBEDDING: Final = Row(
    "other call: East Asian",
    r"向量化|嵌入模型|埋め込み|임베딩",
    "嵌入模型：输入超出上下文窗口",
)

EAST_ASIAN: Final[tuple[Row, ...]] = (*_CHINESE, *_JAPANESE, *_KOREAN, _EMBEDDING)
"""Rows of all meanings, as in ``limits`` and ``vetoes``."""
