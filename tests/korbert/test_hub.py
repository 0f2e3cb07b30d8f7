"""Models of the Hub, from a server on this machine that speaks what `huggingface_hub` asks of the Hub."""

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import unquote, urlsplit

import pytest

from korbert import hub
from korbert.errors import SettingsError
from korbert.folders import is_on_hub, lasting, model_folder

PRIVATE = "someone/private"


class _Hub(BaseHTTPRequestHandler):
    """Repositories in memory: name -> file -> content, each with one revision, the hash of all."""

    def log_message(self, *given):
        pass

    def _send(self, body, code=200, **headers):
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        for name, value in {"Content-Length": len(content), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _missing(self, what="RepoNotFound", code=404):
        self._send({"error": what}, code, X_Error_Code=what)

    def do_GET(self):
        self.server.asked.append(f"{self.command} {self.path}")
        path = unquote(urlsplit(self.path).path).strip("/")
        user, name, what, *rest = path.removeprefix("api/models/").split("/")
        repo = self.server.repos.get(f"{user}/{name}")
        if repo is None or f"{user}/{name}" == PRIVATE:
            return self._missing()
        sha = hashlib.sha1(b"".join(repo[file] for file in sorted(repo))).hexdigest()
        if what == "revision":
            files = [{"rfilename": file} for file in repo]
            return self._send({"id": f"{user}/{name}", "sha": sha, "siblings": files})
        if what == "tree":
            tree = [{"type": "file", "path": file, "size": len(repo[file]), "oid": _oid(repo[file])} for file in repo]
            return self._send(tree)
        file = "/".join(rest[1:])
        if file not in repo:
            return self._missing("EntryNotFound")
        return self._send(repo[file], ETag=f'"{_oid(repo[file])}"', X_Repo_Commit=sha)

    do_HEAD = do_GET

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = self.path.strip("/")
        if path == "api/validate-yaml":
            return self._send({"errors": [], "warnings": []})
        if self.headers.get("Authorization") != "Bearer hf_mine":
            return self._missing("Invalid username or password.", 401)
        if path == "api/repos/create":
            given = json.loads(body)
            repo = f"{given.get('organization', 'me')}/{given['name']}"
            self.server.repos.setdefault(repo, {})
            return self._send({"url": f"http://127.0.0.1:{self.server.server_port}/{repo}"})
        repo, what = "/".join(path.split("/")[2:4]), path.split("/")[4]
        if what == "preupload":
            plain = {"uploadMode": "regular", "shouldIgnore": False}
            return self._send({"files": [{"path": file["path"], **plain} for file in json.loads(body)["files"]]})
        for line in body.splitlines():
            entry = json.loads(line)
            if entry["key"] == "file":
                self.server.repos[repo][entry["value"]["path"]] = base64.b64decode(entry["value"]["content"])
        return self._send({"commitUrl": f"http://127.0.0.1/{repo}/commit/1", "commitOid": "1" * 40, "success": True})


def _oid(content):
    return hashlib.sha1(content).hexdigest()


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), _Hub) as server:
        server.repos, server.asked = {PRIVATE: {}}, []
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def python(server, tmp_path):
    """(code, settings of the environment) -> what a new Python with this Hub and a cache of its own prints."""

    def ran(code, **changes):
        hub = {"HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}", "HF_HOME": str(tmp_path / "cache")}
        own = {"HF_HUB_OFFLINE": "0", "HF_TOKEN": "hf_mine", "OMP_NUM_THREADS": "1", **hub, **changes}
        run = [sys.executable, "-c", f"import korbert\n{code}"]
        return subprocess.check_output(run, text=True, env=os.environ | own).splitlines()

    return ran


def test_a_model_goes_to_the_hub_and_comes_back_also_without_a_network(python, server, untrained):
    server.repos["me/carded"] = carded = {"README.md": b"mine", "pytorch_model.bin": b"x"}
    push = f"model = korbert.load({str(untrained())!r})\nprint(model.digest)\n"
    digest, url, _ = python(push + "for name in ('me/mood', 'me/carded'): print(model.push_to_hub(name))")
    assert url == f"http://127.0.0.1:{server.server_port}/me/mood"
    card = server.repos["me/mood"]["README.md"].decode()
    assert "library_name: korbert" in card
    assert 'korbert.load("hf:me/mood")  # it can fill and embed' in card
    assert carded["README.md"] == b"mine"

    load = "model = korbert.load('hf:me/carded', 'cpu')\nprint(model.digest, model.folder, *model.can)\n"
    fail = "try: korbert.load('hf:{}')\nexcept korbert.ModelError as error: print(error)\n"
    loaded, private, wrong = python(load + fail.format(PRIVATE) + fail.format("a/b/c"))
    assert loaded == f"{digest} hf:me/carded fill embed"
    assert not any("resolve" in path and "pytorch_model" in path for path in server.asked)
    said = "hf:someone/private: 404 Client Error.*: check the name, and log in with `hf auth login` if it is private"
    assert re.fullmatch(said, private)
    assert wrong.startswith("hf:a/b/c: Repo id must be in the form")
    push = "try: model.push_to_hub('me/mood')\nexcept korbert.ModelError as error: print(error)"
    there, absent, pushed = python(load + fail.format("me/none") + push, HF_ENDPOINT="http://127.0.0.1:9")
    assert there == loaded
    said = "hf:me/none: the Hub cannot be reached, the cache lacks it: check the network"
    assert absent.startswith(said)
    said = "hf:me/mood: .*: log in with `hf auth login`, and name a repository of your own as USER/NAME"
    assert re.fullmatch(said, pushed)


def test_names_that_last_and_the_extra_that_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert is_on_hub("hf:a/b")
    for name, lasts in {"hf:a/b@main": "hf:a/b@main", "korbert-mini": "korbert-mini", "a/b": f"{tmp_path}/a/b"}.items():
        assert lasting(name) == lasts
    (tmp_path / "korbert-mini").mkdir()
    assert lasting("korbert-mini") == str(tmp_path / "korbert-mini")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    hub.download.cache_clear()
    with pytest.raises(SettingsError, match=r"hf:a/b needs huggingface_hub: pip install 'korbert\[hf\]'"):
        model_folder("hf:a/b")
