"""The last look at a text before it is sent: no key, no path of this machine, no tool markup.

Answers have been cleaned before, each by its own layer; this is the net below all of them. It
works on Markdown, so that what somebody asked to see as code is told from what leaked.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from chathands.toolbox.redact import HIDDEN, Redactor

if TYPE_CHECKING:
    from chathands.settings import Settings

LEFT_OUT = "（这里省略了一段程序报错）"
SHORTEST_KEY = 16
"""Characters of a value that can be a key; shorter ones are examples and words."""
SHORTEST_PATH = 4
"""`/app`, where containers have it."""
_VARIED = 8
"""Different characters a real key has at least; `sk-xxxxxxxxxxxxxxxx` has one."""

_FENCED = re.compile(r"^([ \t]*(`{3,}|~{3,})[^`\n]*\n)(.*?)(^[ \t]*\2[`~]*[ \t]*$|\Z)", re.M | re.S)
_ACTION_INFO = re.compile(r"\b(?:action|tool_calls?)\b")
_CALL = re.compile(
    r"\s*\[?\s*\{\s*\"(?:tool|tool_name|tool_calls?|name|function)\"\s*:.*"
    r"\"(?:parameters|arguments|tool_input|params)\"\s*:",
    re.S,
)
_OUR_CALL = re.compile(r"\s*\{\s*\"tool\"\s*:\s*\"[^\"\n]*\"\s*,\s*\"parameters\"\s*:")
_MARKUP = re.compile(
    r"<(tool_calls?|function_calls?|tool_response|think|thinking)\b[^<>]{0,400}>.*?(?:</\1>|\Z)"
    r"|<invoke\s+name=[^<>]{1,400}>.*?(?:</invoke>|\Z)"
    r"|<function=[^<>]{1,200}>.*?(?:</function>|\Z)"
    r"|<\|(?:tool|im_start|im_end|assistant|plugin)[^<>|]{0,60}\|>"
    r"|</(?:tool_calls?|function_calls?|tool_response|think|thinking|invoke|function)>"
    r"|<｜[^<>｜]{0,3}(?:DSML|tool)[^<>｜]{0,60}｜[^<>]{0,200}>"
    r"|^[ \t]*\{\s*\"tool\"\s*:\s*\"[^\"\n]*\"\s*,\s*\"parameters\"\s*:[^\n]*\}[ \t]*$"
    r"|^[ \t]*(?:结果|Result) #\d+ [\w.-]+[ \t]*\[status=[^\]\n]*\][ \t]*$",
    re.S | re.M,
)
_INLINE = re.compile(r"(?<!`)(`{1,2})(?!`)[^`\n]{1,500}(?<!`)\1(?!`)")

_KEY = re.compile(
    r"\bsk-[\w-]{16,}|\bSEC[0-9a-f]{32,}|\bgh[pousr]_\w{30,}|\bgithub_pat_\w{30,}"
    r"|\bxox[abprs]-[\w-]{16,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{35}\b|\bLTAI\w{12,}"
    r"|\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"
)
_NAMED_KEY = re.compile(
    r"(?i)((?:(?<![a-z])(?:access_?token|api_?key|app_?secret|client_?secret|secret|token|passw(?:or)?d|sign"
    r"|authorization)|密钥|令牌|密码)[\"']?[ \t]*(?:=|:|：|是|为)[ \t]*(?:bearer[ \t]+)?[\"']?)"
    r"([a-z0-9_.~+/=%-]{16,})|(\bbearer[ \t]+)([a-z0-9_.~+/=-]{16,})"
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*-----|\Z)", re.S
)

_TRACEBACK = re.compile(
    r"Traceback \(most recent call last\):\s*\n(?:[ \t]+[^\n]*(?:\n|\Z))+"
    r"(?:[\w.]+(?:Error|Exception|Exit|Interrupt|Warning)\b[^\n]*)?"
)
_FRAME = re.compile(
    r"^[ \t]*File \"[^\"\n]+\", line \d+(?:, in [^\n]+)?(?:\n[ \t]{2,}[^\n]*)?", re.M
)
_BARE_ERROR = re.compile(
    r"(?:\b[a-z_]\w*\.)+[A-Z]\w*(?:Error|Exception|Timeout)\b(?:\([^()\n]{0,300}\)|: [^\n]{1,300})"
    r"|\b[A-Z]\w*(?:Error|Exception)\([\"'][^()\n]{0,300}\)"
    r"|(?:\b[A-Z]\w*Error: )?\[(?:Errno|WinError) \d+\] [^\n。]{1,300}"
)
_PLACE = r"[^\s\"'`<>|*?，。；：、（）()\[\]【】「」]"
_PATH = re.compile(
    rf"(?:file://|(?<![\w/.:~-]))/(?:home|root|Users|tmp|var/(?:lib|tmp|run|folders)|private|proc|srv"
    rf"|opt|mnt|usr/local)/{_PLACE}+"
    rf"|\b[A-Za-z]:[\\/](?![/\\]){_PLACE}*[\\/]{_PLACE}+"
)


class Redaction:
    """`directories` are this program's: paths below them are hidden everywhere, code included."""

    def __init__(
        self, secrets: Redactor | None = None, directories: Iterable[Path | str] = ()
    ) -> None:
        self._secrets = secrets or Redactor()
        spelled = {str(directory).rstrip("/\\") for directory in directories}
        spelled |= {directory.replace("\\", "/") for directory in spelled}
        # A directory as short as `/` would be found in half of all texts.
        found = sorted((d for d in spelled if len(d) >= SHORTEST_PATH), key=len, reverse=True)
        either = "|".join(map(re.escape, found))
        self._own = (
            re.compile(rf"(?:file://|(?<![\w.:/~-]))(?:{either})(?![\w-]){_PLACE}*")
            if either
            else None
        )

    @classmethod
    def of(cls, settings: Settings) -> Redaction:
        """Knows the secrets of the settings, and where this program and its data lie."""
        own = [Path.cwd(), settings.data_dir, settings.state_dir, settings.tools_dir, Path.home()]
        where = {str(directory.resolve()) for directory in own} | {
            sys.prefix,
            sys.base_prefix if sys.base_prefix != "/usr" else sys.prefix,
            str(Path(__file__).resolve().parents[2]),
        }
        return cls(Redactor.of(settings), where)

    def known(self, text: str) -> str:
        """Without the secrets of the settings; nothing else is touched. For what must be shown as
        it is: an approval."""
        return self._secrets.secrets(text)

    def markdown(self, text: str) -> str:
        """The text as it may be shown; calls in it are gone, keys and paths replaced."""
        text = _PRIVATE_KEY.sub(HIDDEN, self._secrets.secrets(text))
        text = _NAMED_KEY.sub(_named, _KEY.sub(lambda m: _hidden(m[0]), text))
        if self._own is not None:
            text = self._own.sub(_basename, text)
        if (
            not any(mark in text for mark in "<`~{/\\#[")
            and "Error" not in text
            and "Exce" not in text
        ):
            return text
        out: list[str] = []
        at = 0
        for fence in _FENCED.finditer(text):
            out.append(_prose(text[at : fence.start()]))
            if not _is_call(fence):
                out.append(fence[0])
            at = fence.end()
        out.append(_prose(text[at:]))
        return "".join(out)


def _is_call(fence: re.Match[str]) -> bool:
    info = fence[1].strip().lstrip("`~").strip()
    if "action" in info.split():
        return True  # also a broken one
    body = fence[3][:2000]
    if _ACTION_INFO.search(info):
        return _CALL.match(body) is not None
    # Other keys than our own are what a lesson on some other protocol shows.
    return info in ("", "json") and _OUR_CALL.match(body) is not None


def _prose(text: str) -> str:
    """Outside of fences; what stands in inline code is quoted, and only paths leave it."""
    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        kept.append(_PATH.sub(_basename, found[0]))
        return f"\0{len(kept) - 1}\0"

    text = _INLINE.sub(keep, text.replace("\0", ""))
    text = _MARKUP.sub("", text)
    text = _FRAME.sub("", _TRACEBACK.sub(LEFT_OUT, text))
    text = _PATH.sub(_basename, _BARE_ERROR.sub(LEFT_OUT, text))
    return re.sub(r"\0(\d+)\0", lambda m: kept[int(m[1])], text)


def _basename(found: re.Match[str]) -> str:
    """`…/09.xlsx`: what the file is called is what people speak of; where it lies is ours."""
    name = re.split(r"[\\/]", found[0].rstrip("\\/"))[-1]
    tail = re.search(r"[.,:;!?]*$", name)
    name = name[: tail.start()] if tail else name
    return (f"…/{name}" if "." in name[1:] else "…") + (tail[0] if tail else "")


def _hidden(value: str) -> str:
    """A key has digits and many different characters; a placeholder has not."""
    real = any(c.isdigit() for c in value) and len(set(value)) >= _VARIED
    return HIDDEN if real else value


def _named(found: re.Match[str]) -> str:
    head, value = (found[1], found[2]) if found[2] else (found[3], found[4])
    letters = any(c.isalpha() for c in value)
    return head + (_hidden(value) if letters and len(value) >= SHORTEST_KEY else value)
