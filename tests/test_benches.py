"""The benchmarks refuse options that select nothing to measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from benches import command, curve

Main = Callable[[Sequence[str]], int]


@pytest.mark.parametrize(
    ("main", "options", "message"),
    [
        (command.main, "no-such-case", "no case 'no-such-case'"),
        (command.main, "scan --contender typo", "no contender 'typo'; pass one of ours, deltalake"),
        (command.main, "spark-scan --contender duckdb", "no contender 'duckdb'"),
        (command.main, "scan --rounds 0", "0 is less than 1"),
        (curve.main, "--contender typo", "no contender 'typo'; pass one of ours, delta_kernel"),
        (curve.main, "--contender duckdb", "no contender 'duckdb'"),
        (curve.main, "--rounds 0", "0 is less than 1"),
        (curve.main, "--largest 9999", "9,999 is less than 10,000"),
    ],
)
def test_options_that_select_nothing(
    main: Main, options: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match=r"^2$"):
        main(options.split())
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("main", [command.main, curve.main])
def test_both_programs_have_the_common_options(main: Main, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["--help"])
    help_text = capsys.readouterr().out
    for option in ("rounds", "contender", "timeout", "cache", "results", "kernel"):
        assert f"--{option} " in help_text
