"""The gateway and the tool API on the bot's own port, when the settings ask for it."""

from nonebot import get_driver, require
from nonebot.plugin import PluginMetadata

require("group_chat")

from plugins.group_chat import service  # noqa: E402 - NoneBot wants `require` before the import
from plugins.http_api.face import HttpFace  # noqa: E402

__plugin_meta__ = PluginMetadata(
    name="ChatHands HTTP 接口",
    description="在机器人的端口上提供网关和工具接口，和机器人用同一批工具、同一份审批",
    usage="CHATHANDS__API__ON_BOT_PORT=true；见 docs/gateway.md",
    type="application",
    homepage="https://github.com/chathands/chathands",
)

mounted = HttpFace()
service.followers.append(mounted.follow)

driver = get_driver()
driver.on_startup(mounted.mount)
driver.on_shutdown(mounted.close)
