"""Answers mentions in QQ groups and private chats: metadata, configuration and matchers only."""

from nonebot import get_driver, on_message, on_notice
from nonebot.adapters.onebot.v11 import Bot, Event, MessageEvent, NoticeEvent
from nonebot.message import event_preprocessor
from nonebot.plugin import PluginMetadata

from chathands.settings import Settings
from plugins.group_chat import onebot_v11
from plugins.group_chat.onebot_v11_notices import PLATFORM, notice_of
from plugins.group_chat.service import Service

__plugin_meta__ = PluginMetadata(
    name="ChatHands 群聊",
    description="在群里 @机器人 提问：只会聊天的模型用本地工具做事，对外的操作要人确认",
    usage="@机器人 要做的事；需要确认时引用那条消息回复 确认 或 取消；@机器人 停",
    type="application",
    homepage="https://github.com/chathands/chathands",
    config=Settings,
    supported_adapters={"~onebot.v11"},
)

onebot_v11.install()
line = onebot_v11.OneBotLine()
service = Service(line)

driver = get_driver()
driver.on_startup(service.start)
driver.on_shutdown(service.stop)
line.liveness.install(lambda bot_id: service.connected(PLATFORM, bot_id))

mention = on_message(rule=line.heard, priority=10, block=True)


@mention.handle()
async def hear(bot: Bot, event: MessageEvent) -> None:
    if service.chat.admits(line.arrival(bot, event)):
        await service.chat.receive(await line.read(bot, event))


happening = on_notice(priority=10, block=False)


@happening.handle()
async def note(bot: Bot, event: NoticeEvent) -> None:
    if (notice := await notice_of(bot, event)) is not None:
        await service.chat.notice(notice)


@event_preprocessor
async def overhear(bot: Bot, event: Event) -> None:
    chat = getattr(service, "chat", None)  # raising here would lose the event
    if chat is not None and (sent := line.overheard(bot, event)) is not None:
        chat.overhear(*sent)
