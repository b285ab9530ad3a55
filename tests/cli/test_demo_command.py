import pytest

from bayplan.cli import main


def demo(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(["demo", *arguments])
    return ended.value.code or 0


def test_without_a_terminal_progress_and_the_last_frame_are_printed(capsys):
    assert demo("--nodes", "12", "--pods", "30") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("decided 3/30")
    assert lines[-1].startswith("30 pods: MostAllocated ")
    assert any(line.startswith("gpu-000") for line in lines)
    assert not any("\x1b" in line for line in lines)


def test_the_same_seed_ends_the_same(capsys):
    results = []
    for _ in range(2):
        demo("--seed", "9", "--pods", "20")
        results.append(capsys.readouterr().out.splitlines()[-1])
    assert results[0] == results[1]


@pytest.mark.parametrize("speed", ["nan", "inf", "-inf", "0"])
def test_a_speed_nothing_can_be_drawn_at_is_refused(capsys, monkeypatch, speed):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert demo("--speed", speed) == 2
    assert "--speed" in capsys.readouterr().err


def test_a_terminal_is_drawn_on_and_ends_with_the_result(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("bayplan.cli.demo.time.sleep", lambda seconds: None)
    assert demo("--pods", "20", "--speed", "1000000") == 0
    assert "20 pods: MostAllocated" in capsys.readouterr().out
