"""`.env.example` names every setting, and nothing that is not one."""

import re
from pathlib import Path

from pydantic import BaseModel

from chathands.settings import Settings

EXAMPLE = (Path(__file__).parents[1] / ".env.example").read_text("utf-8")


def _keys(model: type[BaseModel], prefix: str) -> list[str]:
    keys: list[str] = []
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            keys += _keys(kind, f"{prefix}{name.upper()}__")
        else:
            keys.append(f"{prefix}{name.upper()}")
    return keys


def test_every_setting_has_a_line_in_the_example():
    written = set(re.findall(r"^#? ?(CHATHANDS__[A-Z_]+)=", EXAMPLE, re.M))
    assert written == set(_keys(Settings, "CHATHANDS__"))


def test_the_example_holds_no_secret():
    assert not re.search(r"^[^#\n]*(KEY|TOKEN|SECRET)\s*=\s*\S", EXAMPLE, re.M)


def test_uncommented_values_are_valid_as_they_stand(tmp_path, monkeypatch):
    from chathands.settings import load_settings

    uncommented = re.sub(
        r"^# (CHATHANDS__[A-Z_]+=.+)$",
        lambda match: match.group(1),
        EXAMPLE,
        flags=re.M,
    )
    (tmp_path / ".env").write_text(uncommented, "utf-8")
    settings = load_settings(tmp_path)
    assert settings.dingtalk.robots["销售群"].keywords == ("日报",)
    assert settings.max_rounds == 5


DOCS = Path(__file__).parents[1] / "docs"


def test_the_pages_for_admins_name_only_settings_that_exist():
    known = set(_keys(Settings, "CHATHANDS__"))
    sections = {key.rpartition("__")[0] for key in known}
    for page in ("troubleshooting.md", "onebot.md"):
        named = set(re.findall(r"CHATHANDS__[A-Z_]*[A-Z]", (DOCS / page).read_text("utf-8")))
        assert named
        assert named <= known | sections
