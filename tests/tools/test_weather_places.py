"""Which place a few words mean, by the table alone."""

from __future__ import annotations

import pytest

from tools.weather.names import latin, stems
from tools.weather.places import cities


def titles(query: str) -> list[str]:
    return [place.title for place in cities().find(query)]


def test_every_prefecture_and_municipality_is_there_and_found_by_its_name() -> None:
    prefectures = [
        d for d in cities().divisions if d.level <= 1 and not d.is_province and d.remark != "former"
    ]
    assert len(prefectures) >= 330 + 4
    for division in prefectures:
        found = cities().find(division.name)
        assert [(place.latitude, place.longitude) for place in found] == [
            (division.latitude, division.longitude)
        ], division.name


def test_every_place_is_found_by_its_whole_path() -> None:
    for division in cities().divisions:
        if division.is_province:
            continue
        found = titles(f"{division.province}{division.prefecture}{division.name}")
        assert found == [division.place().title]


def test_every_place_lies_in_the_country() -> None:
    for division in cities().divisions:
        assert 3 < division.latitude < 54, division
        assert 73 < division.longitude < 136, division


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("北京", "北京市"),
        ("上海市", "上海市"),
        ("中山市", "广东省 中山市"),
        ("广东中山", "广东省 中山市"),
        ("广东省中山市", "广东省 中山市"),
        ("大连中山区", "辽宁省 大连市 中山区"),
        ("大连中山", "辽宁省 大连市 中山区"),
        ("辽宁朝阳", "辽宁省 朝阳市"),
        ("朝阳（辽宁）", "辽宁省 朝阳市"),
        ("朝阳，北京", "北京市 朝阳区"),
        ("北京市朝阳区", "北京市 朝阳区"),
        ("吉林省长春市朝阳区", "吉林省 长春市 朝阳区"),
        ("长春朝阳", "吉林省 长春市 朝阳区"),
        ("南京鼓楼", "江苏省 南京市 鼓楼区"),
        ("江苏 南京 鼓楼区", "江苏省 南京市 鼓楼区"),
        ("吉林市", "吉林省 吉林市"),
        ("吉林省", "吉林省 长春市"),
        ("西安", "陕西省 西安市"),
        ("大同", "山西省 大同市"),
        ("海南", "海南省 海口市"),
        ("长沙", "湖南省 长沙市"),
        ("长沙县", "湖南省 长沙市 长沙县"),
        ("浦东", "上海市 浦东新区"),
        ("海淀县", "北京市 海淀区"),
        ("昆山", "江苏省 苏州市 昆山市"),
        ("大理", "云南省 大理白族自治州"),
        ("恩施州", "湖北省 恩施土家族苗族自治州"),
        ("内蒙古", "内蒙古自治区 呼和浩特市"),
        ("神农架", "湖北省 神农架林区"),
        ("济源", "河南省 济源市"),
        ("雄安", "河北省 雄安新区"),
        ("香港", "香港特别行政区"),
        ("臺北", "台湾省 台北市"),
        ("新竹", "台湾省 新竹市"),
        ("杭州江干区", "浙江省 杭州市 江干区"),
        ("中国杭州", "浙江省 杭州市"),
        ("武汉的天气", "湖北省 武汉市"),
        ("Beijing", "北京市"),
        ("beijing city", "北京市"),
        ("Xi'an", "陕西省 西安市"),
        ("Ürümqi", "新疆维吾尔自治区 乌鲁木齐市"),
        ("Hong Kong", "香港特别行政区"),
        ("Changzhi, China", "山西省 长治市"),
    ],
)
def test_one_place_is_meant(query: str, expected: str) -> None:
    assert titles(query) == [expected]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("中山", {"广东省 中山市", "辽宁省 大连市 中山区"}),
        ("朝阳", {"辽宁省 朝阳市", "北京市 朝阳区", "吉林省 长春市 朝阳区"}),
        ("朝阳区", {"北京市 朝阳区", "吉林省 长春市 朝阳区"}),
        (
            "鼓楼",
            {
                "江苏省 南京市 鼓楼区",
                "江苏省 徐州市 鼓楼区",
                "福建省 福州市 鼓楼区",
                "河南省 开封市 鼓楼区",
            },
        ),
        ("吉林", {"吉林省 长春市", "吉林省 吉林市"}),
        ("江北", {"浙江省 宁波市 江北区", "重庆市 江北区"}),
        ("Suzhou", {"江苏省 苏州市", "安徽省 宿州市"}),
    ],
)
def test_several_places_are_meant(query: str, expected: set[str]) -> None:
    assert set(titles(query)) == expected


@pytest.mark.parametrize("query", ["东京", "Paris", "新区", "市", "某某城", "地区", "县"])
def test_no_place_of_the_table_is_meant(query: str) -> None:
    assert titles(query) == []


def test_a_place_below_a_known_one_is_split_off() -> None:
    split = cities().split("江苏昆山周庄")
    assert split is not None
    city, rest = split
    assert (city.title, rest) == ("江苏省 苏州市 昆山市", "周庄")
    assert cities().split("东京") is None


def test_an_approximate_or_former_place_says_so() -> None:
    (approximate,) = cities().find("深圳龙华区")
    assert "按深圳市的位置" in approximate.note
    (former,) = cities().find("杭州江干区")
    assert "撤并" in former.note


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("内蒙古自治区", "内蒙古"),
        ("大理白族自治州", "大理"),
        ("巴音郭楞蒙古自治州", "巴音郭楞"),
        ("积石山保安族东乡族撒拉族自治县", "积石山"),
        ("浦东新区", "浦东"),
        ("沙县区", "沙县"),
        ("香港特别行政区", "香港"),
    ],
)
def test_short_names(name: str, short: str) -> None:
    assert stems(name) == (short,)


@pytest.mark.parametrize("name", ["索县", "东区", "城区"])
def test_one_letter_is_no_name(name: str) -> None:
    assert stems(name) == ()


def test_latin_letters_are_folded() -> None:
    assert latin("Lǚliáng Shì") == "luliangshi"
