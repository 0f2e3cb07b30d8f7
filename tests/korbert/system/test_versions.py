from korbert.system import versions


def test_the_local_label_is_cut_off(monkeypatch):
    assert versions.installed_version("korbert-no-such-package") == "absent"
    for full, public in (("2.13.0+cpu", "2.13.0"), ("0.24.1", "0.24.1")):
        monkeypatch.setattr(versions, "version", lambda package, full=full: full)
        assert versions.installed_version.__wrapped__("torch") == public
