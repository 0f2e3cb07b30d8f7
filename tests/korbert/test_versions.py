import pytest

from korbert import versions


@pytest.mark.parametrize(("full", "public"), [("2.13.0+cpu", "2.13.0"), ("0.24.1", "0.24.1")])
def test_the_local_label_is_cut_off(monkeypatch, full, public):
    monkeypatch.setattr(versions, "version", lambda package: full)
    assert versions.installed_version.__wrapped__("torch") == public


def test_a_package_that_is_not_installed_is_absent():
    assert versions.installed_version("korbert-no-such-package") == "absent"
