"""Every knob, once. Read from the environment and `.env`, prefix `CHATHANDS__`, nesting by `__`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    field_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings.exceptions import SettingsError

from chathands.env_files import PREFIX, env_files, faults_in, values_of
from chathands.errors import ConfigError
from chathands.models_file import Entry

if TYPE_CHECKING:
    from chathands.times import WorkCalendar
from chathands.settings_push import DRY_RUN as DRY_RUN
from chathands.settings_push import DingTalkSettings, PushSettings
from chathands.settings_push import Robot as Robot


class _Section(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        # .env values that look like numbers (keys, names, passwords) are text all the same.
        coerce_numbers_to_str=True,
    )


class ModelSettings(_Section):
    """One upstream."""

    base_url: str | None = None
    """OpenAI-compatible address, usually ending in /v1."""
    api_key: SecretStr | None = None
    name: str | None = None
    mode: Literal["auto", "emulated", "structured", "native"] = "auto"
    """auto: what `chathands doctor model` measured, else emulated."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """None: 0.1, and 0 for the local model."""
    max_tokens: int | None = Field(default=None, ge=16)
    """None: 1024. A contract block with a report in it stays under it; a runaway reply is cut."""
    context: int = Field(default=8192, ge=1024)
    """Tokens. 8192 is what small hosted models have; the local one gets more if none is set."""
    language: Literal["zh", "en"] = "zh"
    """Language of the contract."""

    @field_validator("base_url")
    @classmethod
    def _an_http_address(cls, value: str | None) -> str | None:
        if value is None or not value.strip():
            return None
        value = value.strip().rstrip("/")
        if not value.startswith(("http://", "https://")):
            raise ValueError("要以 http:// 或 https:// 开头")
        return value


class WeatherSettings(_Section):
    provider: Literal["open-meteo"] = "open-meteo"
    base_url: str = "https://api.open-meteo.com"
    """Forecast address. Open-Meteo's free data is CC BY-NC: commercial use needs a paid plan."""
    geocoding_url: str | None = None
    """None: `base_url`, or Open-Meteo's own geocoding host when base_url is theirs."""
    api_key: SecretStr | None = None
    timeout: float = Field(default=8, gt=0)


class GroupSettings(_Section):
    """The QQ side."""

    queue_wait: float = Field(default=60, gt=0)
    """Seconds a question waits for its turn before it is told so."""
    queue_length: int = Field(default=5, ge=1)
    """Questions waiting in one conversation; more than five and nobody remembers the first."""
    concurrency: int = Field(default=16, ge=1)
    """Runs at once over all groups (1 with the local model, which has one slot)."""
    per_user_minute: int = Field(default=20, ge=1)
    per_group_minute: int = Field(default=60, ge=1)
    per_user_day: int = Field(default=0, ge=0)
    """Questions of one person in one place and day, where its admins set nothing; 0: no limit."""
    enabled: bool = True
    """Whether the bot answers in groups where nobody has said 开 or 关."""
    merge: Literal["off", "private", "all"] = "private"
    """Whether quick lines of one person become one question. In private every line is heard, and
    people write in pieces; in a group each mention asks for an answer of its own."""
    merge_seconds: float = Field(default=1.5, gt=0)
    """Between two lines that belong together; people who write on need about a second a line."""
    debounce: float = Field(default=0, ge=0, le=10)
    """Seconds of quiet before a run begins. 0: nobody waits; a line that comes in time makes the
    run begin anew, which costs one request to the model and only when it does come."""
    busy_seconds: float = Field(default=4, ge=0)
    """After so long the question gets a reaction where the implementation has it; 0: never. Hosted
    models answer within three seconds, and a reaction to each question is noise."""
    progress_seconds: float = Field(default=0, ge=0)
    """After so long one line says that it goes on; 0: never, which is what groups prefer."""
    session: Literal["user", "group"] = "user"
    """Whose conversation: each person's own in each group, or one per group."""
    reply_length: int = Field(default=1500, ge=200)
    """Characters of one plain QQ message; beyond about 2000 risk control starts to refuse."""
    long_reply: Literal["forward", "file", "parts"] = "forward"
    """What a longer one becomes; a forward of more than 12,000 characters is a file anyway. Some
    implementations show forwards as "0 messages" (LLOneBot #775)."""
    tables: Literal["image", "lines", "list"] = "image"
    """`image` needs a font that has Chinese; without one, and where a picture is refused: `lines`,
    columns lined up where a phone has the width. `list`: a line for each row."""
    font: str = ""
    """A font file for pictures of tables. Empty: a well-known one of this machine."""
    file_transfer: Literal["auto", "base64", "path"] = "auto"
    """How a file reaches the implementation; `path` only works on the same machine."""
    ping_seconds: float = Field(default=10, ge=1)
    """Between two pings, and for the answer to one. uvicorn's 20 leave a half-open connection up
    for 40 s, and the reconnect is refused as a duplicate all that time."""
    send_timeout: float = Field(default=15, gt=0)
    """NapCat waits up to 10 s for its own acknowledgement; less would call good sends unknown."""
    bots: tuple[str, ...] = ()
    """Accounts that are other bots: what they say is never answered."""
    turn_cap: int | None = Field(default=None, ge=2)
    """Turns of one person without a pause of three minutes: people make one, bots never do. None:
    half as many again as `per_user_minute`, so that nobody who merely asks fast meets it first."""
    typed_mention: bool = False
    """Whether a typed "@name" counts as a mention. Off: it is text, and others may bear the
    name."""
    stale_seconds: float = Field(default=60, gt=0)
    """Messages older than this are not answered: after a reconnect some implementations report
    again what they had already reported."""
    recent_minutes: float = Field(default=10, ge=0)
    """So long "this file" finds what its sender sent before. QQ's file message cannot mention."""
    file_mb: float = Field(default=20, gt=0)
    """Of one fetched file; the worker's memory limit takes a workbook of about that size."""
    received_mb: float = Field(default=200, gt=0)
    """Kept of one person; the oldest go first."""
    received_days: float = Field(default=7, gt=0)
    fetch_seconds: float = Field(default=10, gt=0)
    """For all files and forwarded messages of one question together."""
    file_origins: tuple[str, ...] = ()
    """`http://host:port` inside the house from which files may be fetched all the same."""
    file_dirs: tuple[Path, ...] = ()
    """Directories of the OneBot implementation on this machine, from which files it names by path
    are read. None by default: a path is only its word."""


class ApiToken(_Section):
    """What a program with this token may do. Its `name` is the user its calls are made as."""

    name: str = Field(min_length=1)
    role: Literal["member", "admin", "superuser"] = "member"
    models: tuple[str, ...] = ()
    """Models of the gateway; not given: all. An empty list, which might mean none, is refused."""
    tools: tuple[str, ...] = ()
    """Tools by name or pattern (`excel_*`); not given: all that the role may use."""
    rate: int = Field(default=60, ge=1)
    """Requests a minute: of the gateway, and calls of tools, together."""
    may_approve: bool = False
    """Whether it may decide what other tokens ask for."""

    @field_validator("models", "tools", mode="before")
    @classmethod
    def _not_written_empty(cls, value: Any) -> Any:
        if value == []:  # as JSON has it; what is not written is a tuple
            raise ValueError("不能写空的列表：不写才是全部，一个都不给就不要这个 token")
        return value


class ApiSettings(_Section):
    tokens: dict[str, ApiToken] = Field(default_factory=dict)
    ticket_seconds: float = Field(default=300, gt=0)
    """How long an approval asked for by a program waits. A person has to see a private message and
    is not in the middle of a talk with it, so that it is longer than `approval_seconds`."""
    job_after: float = Field(default=20, gt=0)
    """Seconds after which a call goes on as a job: well below the 60 at which proxies give up."""
    job_seconds: float = Field(default=600, gt=0)
    """How long the result of a job can be fetched."""
    on_bot_port: bool = False
    """Whether bot.py serves the gateway and the tool API too, on its own port."""
    body_kb: int = Field(default=1024, ge=1)
    """Of a tool's arguments; texts are a few kB, files are not passed as arguments."""
    response_days: float = Field(default=30, ge=0)
    """So long after its last use a response (`/v1/responses`) can be gone on from, as with OpenAI
    itself. 0: none is stored."""
    response_count: int = Field(default=5000, ge=1)
    """Responses kept of one token; an agent makes a few hundred a day."""
    response_mb: float = Field(default=100, ge=16)
    """What they may take on disk. 16 holds the largest request with its reply."""

    @field_validator("tokens")
    @classmethod
    def _each_its_own(cls, tokens: dict[str, ApiToken]) -> dict[str, ApiToken]:
        if any(not token.strip() or token != token.strip() for token in tokens):
            raise ValueError("token 不能是空的，两头也不能有空格")
        names = [token.name for token in tokens.values()]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"两个 token 不能同名：{'、'.join(twice)}")
        return tokens


class McpSettings(_Section):
    """`chathands mcp`, which has no tokens: whoever starts it says who calls."""

    role: Literal["member", "admin", "superuser"] = "member"
    name: str = Field(default="local", min_length=1, max_length=60)
    """The user its calls are made as, in the audit trail and in `who` of tools.toml."""


class WorkerSettings(_Section):
    """Limits of one job in a child process."""

    memory_mb: int = Field(default=1024, ge=128)
    """Address space. A 300,000-row workbook peaks at 370 MB raw and pandas doubles it."""
    cpu_seconds: int = Field(default=20, ge=1)
    wall_seconds: float = Field(default=20, gt=0)
    """The 300,000-row workbook takes 2-4 s; the far-cell bomb never ends."""


class StoreSettings(_Section):
    trace_days: int = Field(default=7, ge=1)
    trace_mb: int = Field(default=500, ge=1)
    audit_days: float = Field(default=365, ge=0)
    """How long the audit trail is kept at least; older segments go whole. 0: for good. A busy group
    writes under 1 MB a day; half a year is what network operators in China have to keep."""
    history_rounds: int = Field(default=6, ge=0)
    """Earlier questions of a conversation the model sees again; 0: every question stands alone."""
    history_tokens: int | None = Field(default=None, ge=100)
    """What they may take together. None: a quarter of the model's context."""
    summary: bool = True
    """Whether the model is asked, behind the replies, for a summary of what no longer fits; without
    it the first words of each question and answer are kept."""
    memory_days: float = Field(default=30, gt=0)
    """What was said before that is forgotten; a month covers "as in the last report"."""


class CalendarSettings(_Section):
    """Holidays of years that the installed `chinesecalendar` does not know yet."""

    days_off: tuple[date, ...] = ()
    """Weekdays on which nobody works; a year that has any here is taken from here alone."""
    workdays: tuple[date, ...] = ()
    """Weekend days that are worked."""

    def work_calendar(self) -> WorkCalendar:
        from chathands.times import WorkCalendar

        return WorkCalendar.of(self.days_off, self.workdays)


class ReminderSettings(_Section):
    """What people may have the bot say later."""

    per_person: int = Field(default=20, ge=1, le=1000)
    """Waiting ones of one person, all places together: more are forgotten about anyway."""
    per_group: int = Field(default=100, ge=1, le=10_000)
    """Waiting ones in one group, of all its members."""


class Settings(BaseSettings):
    """All settings. Use `load_settings()`, which turns mistakes into one sentence."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        extra="ignore",  # .env also holds NoneBot's keys; unknown ones of ours: load_settings
        env_ignore_empty=True,
        nested_model_default_partial_update=True,
    )

    model: ModelSettings = Field(default_factory=ModelSettings)
    deadline: float | None = Field(default=None, gt=0)
    """Seconds for a run. None: 30, and 180 with the local model (2 cores write 25 tokens/s)."""
    max_rounds: int = Field(default=5, ge=1, le=20)
    data_dir: Path = Path("data")
    tools_dir: Path = Path("tools")
    watch_tools: bool = True
    """Whether files of tools_dir are loaded when they change, without a command."""
    tool_import_seconds: float = Field(default=20, gt=0)
    """For the import of one tool file, beyond which it is given up: a cold start of a large library
    takes several."""
    state_dir: Path = Path("state")
    """Database, traces, audit. Never below data_dir: tools can read that."""
    cache_dir: Path | None = None
    """Weights of the local model. None: the user's cache directory."""
    approval: Literal["outward", "always", "never"] = "outward"
    approval_seconds: float = Field(default=60, gt=0)
    local_model: bool = True
    """Whether the local default may be used when no model is configured."""
    dingtalk: DingTalkSettings = Field(default_factory=DingTalkSettings)
    push: PushSettings = Field(default_factory=PushSettings)
    weather: WeatherSettings = Field(default_factory=WeatherSettings)
    group: GroupSettings = Field(default_factory=GroupSettings)
    api: ApiSettings = Field(default_factory=ApiSettings)
    mcp: McpSettings = Field(default_factory=McpSettings)
    worker: WorkerSettings = Field(default_factory=WorkerSettings)
    store: StoreSettings = Field(default_factory=StoreSettings)
    timezone: str = "Asia/Shanghai"
    """An IANA name: what people mean by three o'clock, whatever the machine's own zone."""
    calendar: CalendarSettings = Field(default_factory=CalendarSettings)
    reminders: ReminderSettings = Field(default_factory=ReminderSettings)
    _models: Mapping[str, Entry] = PrivateAttr(default_factory=dict)  # set by model_choice
    _entry: str | None = PrivateAttr(None)

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

        try:
            return ZoneInfo(name).key
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError("没有这个时区，要写成 Asia/Shanghai 这样") from None

    @property
    def models(self) -> Mapping[str, Entry]:
        """The upstreams of chathands.toml by name; empty without such a file."""
        return self._models

    @property
    def entry(self) -> str | None:
        """Which of them `model` is; None: it is none of them."""
        return self._entry


RESERVE_SECONDS = 4.0
RESERVE_SHARE = 0.2
RESERVE_CAP = 0.5
"""Reserve of a deadline: max(4 s, 20 %), never more than half; one short answer fits in it."""

DEADLINE_SECONDS = 30.0
LOCAL_DEADLINE_SECONDS = 180.0


def _refuse_unknown(keys: Iterable[str]) -> None:
    """A misspelt key would otherwise be ignored in silence."""
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    for key in keys:
        head = PREFIX + key.removeprefix(PREFIX).split("__")[0]
        if key.startswith(PREFIX) and head not in known:
            near = get_close_matches(head, known, n=1)
            hint = f"，是不是 {near[0]}？" if near else "。"
            raise ConfigError(
                f"unknown setting {key}",
                sentence=f"没有 {key} 这个配置项{hint}请改 .env 后再启动。",
            )


_WHY = {
    "int_parsing": "要是整数",
    "int_from_float": "要是整数",
    "float_parsing": "要是数字",
    "bool_parsing": "要是 true 或 false",
    "greater_than": "要大于 {gt}",
    "greater_than_equal": "不能小于 {ge}",
    "less_than": "要小于 {lt}",
    "less_than_equal": "不能大于 {le}",
    "literal_error": "只能是 {expected}",
    "string_type": '要写成带引号的文字，例如 ["10001"]',
    "set_type": '要写成列表，例如 ["10001"]',
    "list_type": '要写成列表，例如 ["10001"]',
    "tuple_type": '要写成列表，例如 ["日报"]',
    "dict_type": "要写成 JSON 对象",
    "model_type": "要写成 JSON 对象",
    "extra_forbidden": "没有这个配置，请检查拼写",
    "missing": "没有写",
    "string_pattern_mismatch": "写法不对",
    "ip_any_address": "要是 IP 地址，例如 127.0.0.1 或 0.0.0.0",
}


def why_invalid(fault: Mapping[str, Any]) -> str:
    """What is wrong with a setting, in Chinese: `fault` is an entry of `ValidationError.errors()`.

    Errors raised by our own validators say it already; a kind nobody thought of stays English.
    """
    known = _WHY.get(fault["type"])
    if known is None:
        return str(fault["msg"]).removeprefix("Value error, ")
    return known.format_map(fault.get("ctx") or {}).replace(" or ", " 或 ")


def _named(path: Sequence[int | str]) -> list[str]:
    """The parts of a key as they may be shown: those below the tokens are the tokens themselves."""
    parts = [str(part) for part in path]
    if parts[:2] == ["api", "tokens"] and len(parts) > 2:
        parts[2] = "***"
    return parts


def load_settings(directory: Path | None = None, **overrides: Any) -> Settings:
    """Settings from the environment, the `.env` files and `chathands.toml` in `directory` (default:
    the cwd).

    Raises ConfigError with one Chinese sentence that names the key and never shows the value.
    """
    directory = directory or Path.cwd()
    files = env_files(directory)
    for file in files:
        _refuse_unknown(values_of(file))
    for fault in faults_in(directory):
        if fault.key:  # somebody meant to set it, and would run without it
            raise ConfigError(f"{fault.key} is ignored", sentence=f"{fault.sentence}改好后再启动。")
    _refuse_unknown(key.upper() for key in os.environ)
    try:
        settings = Settings(
            _env_file=files,  # type: ignore[call-arg]
            _env_file_encoding="utf-8-sig",  # type: ignore[call-arg]
            **overrides,
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = PREFIX + "__".join(_named(first["loc"])).upper()
        raise ConfigError(
            f"{key}: {first['msg']}",
            sentence=f"配置 {key} 不对：{why_invalid(first)}。请改 .env 后再启动。",
        ) from None
    except SettingsError as error:
        field = str(error).split('"')[1] if '"' in str(error) else "?"
        raise ConfigError(
            f"field {field} is not valid JSON",
            sentence=f"配置 CHATHANDS__{field.upper()} 不是合法的 JSON："
            "要写在一行里，用英文的引号、逗号和括号。改好后再启动。",
        ) from None
    data, state = settings.data_dir.resolve(), settings.state_dir.resolve()
    if state == data or data in state.parents:
        raise ConfigError(
            "state_dir lies below data_dir",
            sentence="CHATHANDS__STATE_DIR 不能放在数据目录里面（工具能读那里），请换一个目录。",
        )
    if overrides.get("model", {}).get("base_url"):
        return settings  # on a command line, which means this upstream and no other
    from chathands.model_choice import take_models

    return take_models(settings, directory)
