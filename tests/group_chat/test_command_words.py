"""Which whole messages are commands, and which questions only begin with such a word."""

import pytest

from plugins.group_chat.command_words import Command, command_in

MEANT = {
    "help": "帮助 help 菜单 /帮助 帮助！ 幫助 HELP ｈｅｌｐ hepl",
    "tools": "工具 工具列表 有哪些工具？ tools TOOL tolls",
    "status": "状态 狀態 状态。 status Status! statu",
    "forget": "忘记 忘記 忘记吧 清空记忆 reset /忘记",
    "stop": "停 停！ stop /停 停一下",
    "usage": "用量 我的用量 usage #用量",
    "on": "开 开启 ON 開",
    "off": "关 关闭 off 停用",
    "quota": "额度 额度？ quota",
    "admins": "管理员 管理員",
    "reload": "重载 重新加载 reload 重載",
    "records": "记录 最近记录 記錄",
    "log": "日志 日誌 logs",
}


@pytest.mark.parametrize("name", MEANT)
def test_spellings(name):
    for spelling in MEANT[name].split():
        found = command_in(f" \u200b{spelling} ")
        assert found == Command(name), spelling


ARGUMENTS = {
    "工具 关 get_weather": Command("tool_off", "get_weather"),
    "工具 開 Get_Weather": Command("tool_on", "get_weather"),
    "关闭工具 get_weather": Command("tool_off", "get_weather"),
    "工具关：push": Command("tool_off", "push"),
    "工具 关 天气": Command("tool_off", "天气"),
    "工具 关": Command("tool_on", change="unclear"),
    "额度 20": Command("quota", number=20, change="add"),
    "额度20次": Command("quota", number=20, change="add"),
    "额度 12345678 20": Command("quota", "12345678", 20, "add"),
    "额度 12345678 不限": Command("quota", "12345678", None, "unlimited"),
    "额度 不限": Command("quota", change="unlimited"),
    "额度 默认": Command("quota", change="default"),
    "管理员 加 12345678": Command("admins", "12345678", change="add"),
    "管理员 减12345678": Command("admins", "12345678", change="remove"),
    "管理员 加 @阿达": Command("admins", "@阿达", change="add"),
    "记录 5": Command("records", number=5),
    "日志20": Command("log", number=20),
    "日志 最近 20 条": Command("log", number=20),
}


@pytest.mark.parametrize("text", ARGUMENTS)
def test_arguments(text):
    assert command_in(text) == ARGUMENTS[text]


QUESTIONS = """\
帮助我写一封邮件
工具箱里有什么
工具 开发怎么学
工具开发
状态机是什么
忘记密码怎么办
忘了
重新开始
停车场在哪
用量杯量水要多少
开会时间是几点
开 3 月的报表
关于九月的汇总
关 闭 环境变量是什么意思啊
额度是多少钱
额度 1234567
记录一下明天开会
记录 今天跑了 5 公里
日志怎么写
日志 20 页的周报
重载卡车多少钱
hello
helper function
help me write a mail
stop the push to sales
管理员是谁
管理员 加 班吗
你好
1
!!!"""


@pytest.mark.parametrize("text", [*QUESTIONS.splitlines(), "", " ", "帮助" * 200, "\ud83d"])
def test_questions(text):
    assert command_in(text) is None
