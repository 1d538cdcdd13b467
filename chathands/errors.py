"""Every exception this package raises on purpose, in one tree.

ChatHandsError
├── ConfigError            a setting is missing or wrong; the sentence names the key
├── UpstreamError          the model endpoint did not give a usable reply
│   ├── UpstreamUnreachable    nothing answered: refused, no such host, no route
│   ├── UpstreamTimeout        something answered too late
│   ├── UpstreamAuthError      401, 403: the key
│   ├── UpstreamNotFound       404: the model's name or the address's path
│   ├── UpstreamBusy           429, or the upstream says it is overloaded
│   ├── UpstreamRefused        400, 413, 422: the request itself (too long, an unknown field)
│   ├── UpstreamFailed         5xx, or the stream broke
│   └── UpstreamGarbage        what came is not the protocol (HTML, not JSON, no choices)
├── LocalModelError        the local model could not be fetched or started
├── ToolError              a tool cannot do what was asked (below)
│   ├── ToolFailed             the model may correct it: wrong name, wrong sheet, not found
│   ├── ToolDenied             this person or place may not
│   └── ToolOutcomeUnknown     a side effect that may have happened; never retried
├── ToolLoadError          a tool module did not load; carries file and line
├── WorkerError            a child process did not deliver
│   ├── WorkerLimit            it ran into its memory, CPU or wall limit, or died
│   └── WorkerRejected         the function in it refused its input, in one sentence
└── StoreError             the state database cannot be read or written

Every error carries `.sentence`: Chinese, for the person: what happened and what to do. `str(error)`
is the English detail for the log and may hold addresses and paths; it never goes to a person.
"""

from __future__ import annotations


class ChatHandsError(Exception):
    """Base of the tree.

    `detail` goes to the log; `sentence` is what a person may see.
    """

    default_sentence = "出了点问题，请稍后再试。"

    def __init__(self, detail: str = "", *, sentence: str | None = None) -> None:
        super().__init__(detail or sentence or type(self).__name__)
        self.sentence = sentence or self.default_sentence


class ConfigError(ChatHandsError):
    default_sentence = "配置有误，请管理员检查 .env。"


class UpstreamError(ChatHandsError):
    """A model endpoint did not give a usable reply.

    `nothing_received` tells whether no byte of an answer came: only then may the call be repeated.
    `status` is the HTTP status that said it, if one did; `retry_after`: seconds it asked to wait.
    """

    default_sentence = "模型暂时没有给出可用的回答，请稍后再试。"

    def __init__(
        self,
        detail: str = "",
        *,
        sentence: str | None = None,
        nothing_received: bool = False,
        status: int | None = None,
    ) -> None:
        super().__init__(detail, sentence=sentence)
        self.nothing_received = nothing_received
        self.status = status
        self.retry_after: float | None = None


class UpstreamUnreachable(UpstreamError):
    default_sentence = "连不上模型服务，请管理员检查模型地址（CHATHANDS__MODEL__BASE_URL）和网络。"


class UpstreamTimeout(UpstreamError):
    default_sentence = "模型没有在时限内回答，请稍后再试或把问题问得短一些。"


class UpstreamAuthError(UpstreamError):
    default_sentence = "模型服务拒绝了密钥，请管理员检查 CHATHANDS__MODEL__API_KEY。"


class UpstreamNotFound(UpstreamError):
    default_sentence = (
        "模型服务说没有这个模型或路径，请管理员检查 CHATHANDS__MODEL__NAME "
        "和 CHATHANDS__MODEL__BASE_URL（通常以 /v1 结尾）。"
    )


class UpstreamBusy(UpstreamError):
    default_sentence = "模型服务正忙或额度用完，请过一会儿再试。"


class UpstreamRefused(UpstreamError):
    default_sentence = "模型服务不接受这次请求（可能太长），请把问题或资料缩短后再试。"


class UpstreamFailed(UpstreamError):
    default_sentence = "模型服务出错，请稍后再试。"


class UpstreamGarbage(UpstreamError):
    default_sentence = (
        "模型地址返回的不是模型的回答（可能是网页），请管理员检查 CHATHANDS__MODEL__BASE_URL。"
    )


class LocalModelError(ChatHandsError):
    default_sentence = "本地模型没有准备好，请管理员看日志。"


class ToolError(ChatHandsError):
    """Raised by tools; `sentence` is what the model and the person get."""

    default_sentence = "工具没有完成。"

    def __init__(self, sentence: str | None = None, *, detail: str = "") -> None:
        super().__init__(detail, sentence=sentence)


class ToolFailed(ToolError):
    default_sentence = "工具没有完成，请换一种说法再试。"


class ToolDenied(ToolError):
    default_sentence = "没有权限做这件事。"


class ToolOutcomeUnknown(ToolError):
    default_sentence = "不能确定这件事是否已经完成，请人工核对；不会自动重试。"


class ToolLoadError(ChatHandsError):
    """A module in `tools/` did not load; the old one, if any, still serves."""

    default_sentence = "有工具没能加载，请管理员看日志。"

    def __init__(self, detail: str, *, file: str, line: int | None = None) -> None:
        where = f"{file}:{line}" if line else file
        super().__init__(f"{where}: {detail}", sentence=f"工具文件 {where} 没能加载：{detail}")
        self.detail = detail
        self.file = file
        self.line = line


class WorkerError(ChatHandsError):
    default_sentence = "处理文件的子进程出错，请稍后再试。"


class WorkerLimit(WorkerError):
    default_sentence = "文件太大或已损坏，超出了处理上限，没有读取。"


class WorkerRejected(WorkerError):
    default_sentence = "文件不能读取。"


class StoreError(ChatHandsError):
    default_sentence = "状态数据库不可用，请管理员检查磁盘和 CHATHANDS__STATE_DIR。"
