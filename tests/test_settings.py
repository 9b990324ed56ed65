"""Settings of triton_viz that environment variables give."""

import pytest

from triton_viz.core.config import Config
from triton_viz.errors import ConfigError


@pytest.mark.parametrize("setting", ["enabled", "vectorized", "values", "progress"])
def test_what_is_on_or_off_is_written_in_one_way(setting: str, monkeypatch: pytest.MonkeyPatch):
    name = f"TRITON_VIZ_{setting.upper()}"
    for on, off in (("1", "0"), ("true", "false"), ("on", "off"), ("yes", "no")):
        for text, meant in ((on, True), (off, False)):
            for spelling in (text, text.upper(), text.title(), f" {text} "):
                monkeypatch.setenv(name, spelling)
                assert getattr(Config.from_environment(), setting) is meant, spelling
    monkeypatch.setenv(name, "")
    assert getattr(Config.from_environment(), setting) is getattr(Config(), setting), "as if it was not set"
    for text in ("2", "-1", "disabled", "none", "0.0", "tru"):
        monkeypatch.setenv(name, text)
        with pytest.raises(
            ConfigError, match=f"{name} is '{text}', and can only be one of 1, true, on, yes, 0"
        ):
            Config.from_environment()
