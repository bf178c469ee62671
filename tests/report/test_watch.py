"""The page live: for this machine alone, and never older than the run."""

import http.client
import threading

import pytest

import maxplore_cli
from maxplore import InputError
from maxplore.report import watch
from maxplore.runs.directory import Folder
from maxplore.runs.record import Record


@pytest.fixture
def served(handmade, tmp_path, monkeypatch):
    """A server about a run, and the run's folder."""
    monkeypatch.setattr(watch, "PATIENCE", 0.0)
    path = handmade(tmp_path / "run")
    with watch.Server([Folder(path)], 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server, path
        server.shutdown()
        thread.join()


def asked(server, place="/", how="GET", host=None):
    """The status, the headers and the text of an answer."""
    own = http.client.HTTPConnection(*server.server_address[:2], timeout=60)
    own.request(how, place, headers={} if host is None else {"Host": host})
    answer = own.getresponse()
    text = answer.read().decode()
    own.close()
    return answer.status, dict(answer.getheaders()), text


def test_it_answers_for_the_page_and_its_version(served):
    server, _ = served
    status, heads, text = asked(server)
    assert status == 200
    assert heads["Content-Type"] == "text/html; charset=utf-8"
    assert heads["Cache-Control"] == "no-store"
    assert "connect-src 'self'" in text
    _, _, version = asked(server, "/version")
    assert f'data-version="{version}"' in text
    assert len(version) == 16


def test_it_answers_this_machine_alone(served):
    server, _ = served
    port = server.server_address[1]
    assert server.server_address[0] == "127.0.0.1"
    assert asked(server, host=f"localhost:{port}")[0] == 200
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1.evil.example:{port}", ""):
        status, _, text = asked(server, host=host)
        assert status == 403
        assert "<" not in text


def test_it_has_nothing_else(served):
    server, _ = served
    for place in ("/run.sqlite", "/../config.json", "/version/", "/?x"):
        assert asked(server, place)[0] == 404
    for how in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert asked(server, how=how)[0] == 501


def test_a_run_that_goes_on_has_a_new_version_and_one_that_rests_has_not(served):
    server, path = served
    first = asked(server, "/version")[2]
    assert asked(server, "/version")[2] == first
    with Record.open(path / "run.sqlite") as record:
        record.note("note", "something happened")
    assert asked(server, "/version")[2] != first
    assert "something happened" in asked(server)[2]


def test_a_run_that_is_gone_is_told_in_one_line(served):
    server, path = served
    (path / "config.json").unlink()
    (path / "run.sqlite").write_bytes(b"")
    status, _, text = asked(server)
    assert status == 503
    assert text.count("\n") == 1


def test_it_is_not_made_anew_all_the_time(handmade, tmp_path):
    path = handmade(tmp_path / "run")
    live = watch.Live([Folder(path)])
    before = live.version
    live._again = float("inf")
    with Record.open(path / "run.sqlite") as record:
        record.note("note", "something happened")
    live.refresh()
    assert live.version == before


def test_a_port_that_cannot_be_had(served, handmade, tmp_path):
    server, _ = served
    for port in (server.server_address[1], 70_000):
        with pytest.raises(InputError, match="port"):
            watch.Server([Folder(handmade(tmp_path / str(port)))], port)


def test_ctrl_c_ends_it_in_good_order(handmade, tmp_path, monkeypatch, capsys):
    def interrupted(self, poll_interval):
        raise KeyboardInterrupt

    path = handmade(tmp_path / "run")
    monkeypatch.setattr(watch.Server, "serve_forever", interrupted)
    assert maxplore_cli.main(["report", str(path), "--watch"]) == 0
    assert "http://127.0.0.1:" in capsys.readouterr().out
    assert maxplore_cli.main(["report", str(path), "--watch", "--out", str(tmp_path / "page.html")]) == 2
    assert "out" in capsys.readouterr().err
