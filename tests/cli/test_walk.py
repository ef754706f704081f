"""The demo of walking: it ends well, and what it tells is so."""

from poise.cli.demos import DEMOS


def test_walks_is_pulled_and_recovers(tmp_path, capsys):
    assert DEMOS["walk"].load()(tmp_path) == 0
    said = capsys.readouterr().out
    assert "pulled by the hand" in said
    assert (tmp_path / "walk.gif").read_bytes()[:6] == b"GIF89a"
