"""Brings what tools send to another group or person: the bot's side of `ToolContext.deliver`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chathands.errors import ToolFailed, ToolOutcomeUnknown
from chathands.toolbox.delivery import Delivery
from plugins.group_chat.messages import Fate, Place
from plugins.group_chat.presence import Presence
from plugins.group_chat.reply import Sender

NOT_CONNECTED = "QQ 现在没有连上，没有发出。请等机器人上线后再发。"
SILENCED = "机器人在那个群里不能说话（被禁言，或者不在群里），没有发出。"
REFUSED = (
    "QQ 没有收下，没有发出。可能机器人不在那个群里、不是那个人的好友、被禁言，或者内容被拦了。"
)
UNKNOWN = "QQ 没有确认收到，不能确定消息有没有发出。请先到那边看一眼；不会自动重发。"
PARTLY = "消息只发出了一部分，后面的没有成功。不要整条重发，请先到那边核对。"
TOO_LATE = "剩下的时间不够再发一条，没有发出。请重新说一次。"


class Pushing:
    """`accounts` gives (platform, account) of each connection there is."""

    def __init__(
        self,
        sender: Sender,
        presence: Presence,
        accounts: Callable[[], Sequence[tuple[str, str]]],
    ) -> None:
        self._sender = sender
        self._presence = presence
        self._accounts = accounts

    async def __call__(self, delivery: Delivery, *, seconds: float) -> None:
        """As `toolbox.delivery.Deliver` says. Nothing is sent twice, and nothing waits for a
        connection: what was asked for now is not to appear in an hour."""
        if seconds <= 0:
            raise ToolFailed(TOO_LATE)
        found = list(self._accounts())
        # The account the question came to, else the only one there is.
        chosen = [each for each in found if each[1] == delivery.bot_id] or found
        if not chosen:
            raise ToolFailed(NOT_CONNECTED)
        if len(chosen) > 1:
            raise ToolFailed("机器人有几个 QQ 号在线，不知道用哪个发，没有发出。请在 QQ 里说。")
        platform, bot = chosen[0]
        place = Place(platform, bot, delivery.group_id, delivery.user_id or "")
        if self._presence.silent(place):
            raise ToolFailed(SILENCED)
        shown = False
        if delivery.text.strip():
            receipt = await self._sender.say(place, delivery.text, patience=0, seconds=seconds)
            _judge(receipt.fate, shown=bool(receipt.ids), doubtful=receipt.doubtful)
            shown = True
        for file in delivery.files:
            fate = await self._sender.hand_file(place, file, patience=0, seconds=seconds)
            _judge(fate, shown=shown, doubtful=fate is Fate.UNKNOWN)
            shown = True


def _judge(fate: Fate, *, shown: bool, doubtful: bool) -> None:
    """Raises what `fate` means for all of it. `shown`: something was, surely."""
    if fate is Fate.SENT:
        return
    if shown:
        raise ToolOutcomeUnknown(PARTLY)
    if doubtful:
        raise ToolOutcomeUnknown(UNKNOWN)
    raise ToolFailed(NOT_CONNECTED if fate is Fate.DOWN else REFUSED)
