"""Place names: in full, in short, as typed in a chat, in Latin letters. Pure text and arithmetic.

Imports nothing of the package: scripts/make_cities.py uses it as it is.
"""

from __future__ import annotations

import math
import re
import unicodedata

NATIONS = (
    "蒙古族|蒙古|回族|藏族|维吾尔族|维吾尔|苗族|彝族|壮族|布依族|朝鲜族|满族|侗族|瑶族|白族|土家族|"
    "哈尼族|哈萨克族|哈萨克|傣族|黎族|傈僳族|佤族|畲族|拉祜族|水族|东乡族|纳西族|景颇族|柯尔克孜族|"
    "柯尔克孜|土族|达斡尔族|仫佬族|羌族|布朗族|撒拉族|毛南族|仡佬族|锡伯族|锡伯|普米族|塔吉克|怒族|"
    "独龙族|鄂温克族|裕固族|保安族|各族"
)
"""Peoples as autonomous areas name them; some without 族 (巴音郭楞蒙古自治州)."""

_AUTONOMOUS = re.compile(rf"^(?P<place>.{{2,}}?)(?:{NATIONS})*自治(?:区|州|县|旗)$")
_SUFFIX = re.compile(
    r"^(?P<place>.{2,}?)(?:特别行政区|行政区|地区|林区|新区|省|市|盟|州|县|区|旗)$"
)
_SEPARATORS = re.compile(r"[\s,，、·・.。/／|\-—_()（）\[\]【】]+")
_BEFORE = re.compile(r"^(?:请问|查询|查一下|看看|查|中国(?=.))")
_AFTER = re.compile(r"(?<=..)(?:这边|那边|那里|本地|市区|城区|(?:地区)?的?天气(?:预报)?)$")
_ENGLISH_TAIL = re.compile(r"(?:city|shi|china|prc)$")
_TRADITIONAL = str.maketrans(
    "臺灣門東廣龍園義雲蓮蘭縣區離島長陽慶漢濟寧無錫鎮紹興蘇揚順陰鹽連賓貴銅樂瀘內資達瀋鐵營遼錦魯齊陸葉"
    "觀將經鄭開許濱萊濰煙棗澤臨歷",
    "台湾门东广龙园义云莲兰县区离岛长阳庆汉济宁无锡镇绍兴苏扬顺阴盐连宾贵铜乐泸内资达沈铁营辽锦鲁齐陆叶"
    "观将经郑开许滨莱潍烟枣泽临历",
)
"""Traditional letters of Chinese place names; people in Hong Kong and Taiwan type them."""


def stems(name: str) -> tuple[str, ...]:
    """The shorter form people use for a full name, if there is one; never one character.

    内蒙古自治区 -> 内蒙古; 大理白族自治州 -> 大理; 浦东新区 -> 浦东; 沙县区 -> 沙县; 索县 -> none.
    """
    match = _AUTONOMOUS.match(name) or _SUFFIX.match(name)
    return (match["place"],) if match else ()


def tokens(query: str) -> list[str]:
    """The parts of what was typed, as separators divide them."""
    text = unicodedata.normalize("NFKC", query).translate(_TRADITIONAL)
    return [part for part in _SEPARATORS.split(text) if part]


def without_chatter(text: str) -> str:
    """Without the words people put around a place. Try the text as it is first: 东城区 is one."""
    return _AFTER.sub("", _BEFORE.sub("", text)) or text


def normal(query: str) -> str:
    """One comparable string: no separators, letters folded."""
    return "".join(tokens(query)).casefold()


def latin(query: str) -> str:
    """Only the letters a-z, accents and `v` for `ü` folded: Xi'an -> xian, Lüliang -> luliang."""
    text = unicodedata.normalize("NFD", query.casefold())
    return "".join(letter for letter in text if "a" <= letter <= "z")


def latin_forms(query: str) -> tuple[str, ...]:
    """What a name in Latin letters may be listed as: itself, then without city, shi, China."""
    whole = latin(query)
    short = _ENGLISH_TAIL.sub("", _ENGLISH_TAIL.sub("", whole))
    return (whole, short) if short and short != whole else (whole,)


def is_latin(query: str) -> bool:
    return any(letter.isascii() and letter.isalpha() for letter in query) and not any(
        "\u3400" <= letter <= "\u9fff" for letter in query
    )


def kilometres(lat: float, lon: float, other_lat: float, other_lon: float) -> float:
    """Distance on a sphere; good to 0.5 %."""
    a, b = math.radians(lat), math.radians(other_lat)
    half = (
        math.sin((b - a) / 2) ** 2
        + math.cos(a) * math.cos(b) * math.sin(math.radians(other_lon - lon) / 2) ** 2
    )
    return 12742 * math.asin(math.sqrt(min(1.0, half)))
