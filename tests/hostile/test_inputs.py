"""250 command lines and files that nobody should have given: each ends in a named error or in the right result.

One alone: `pytest tests/hostile -m "" -k "inputs and 137"`. A failure says where its folder was kept.
"""

import shlex
import shutil

import pytest

from tests.hostile.faults import changes_of, fail, faults_of, leftovers_of
from tests.hostile.inputs import COUNT, draw, slot_of
from tests.hostile.pipeline import digests_of, record_of
from tests.running import run_here, run_outside


@pytest.mark.slow
@pytest.mark.parametrize("number", range(COUNT), ids=lambda number: f"{number:03d}-{slot_of(number)}")
def test_inputs(base_with_partials, tmp_path, number):
    case = draw(base_with_partials, tmp_path, number)
    before = digests_of(tmp_path)
    run = run_outside if case.outside else run_here
    outcome = run(case.arguments, tmp_path, case.stdin, case.seconds)
    faults = [*_faults(case, outcome)]
    after = digests_of(tmp_path)
    faults += [*changes_of(before, after, case.allowed), *leftovers_of(after), *_unhelpful_remedies(case, outcome)]
    fail(faults, _description(case, outcome))
    shutil.rmtree(tmp_path)


def _faults(case, outcome):
    lines = "\n" in "".join(case.arguments)
    yield from faults_of(outcome, names=case.names, codes=case.codes, lines=lines)
    for oracle in (case.right if outcome.code == 0 else None, case.always):
        if oracle is not None:
            try:
                yield from oracle(case.folder, outcome)
            except Exception as error:
                yield f"what came out cannot be looked at: {error!r}"


def _unhelpful_remedies(case, outcome):
    """What has made nothing locks nothing: with the right file the command gives what it always gave.

    Where parts of the stage were finished, they may stand for the other file: then it may refuse, by name.
    """
    if case.mended is None or case.stage is None or outcome.code == 0:
        return
    partial = case.folder / "artifacts" / "tiny" / f"{case.stage}.partial"
    finished = [*partial.rglob("part-*.json"), *partial.rglob("step-*")]
    case.mended()
    again = run_here(case.arguments, case.folder)
    if finished and again.code == 2:
        yield from faults_of(again, names=(case.stage,))
    elif again.code != 0:
        yield f"with the right file it leaves with {again.code}: {again.message}"
    elif record_of(case.folder / "artifacts" / "tiny" / case.stage)["digest"] != case.base.digest(case.stage):
        yield "with the right file it gives another artifact"


def _description(case, outcome):
    words = [word if len(word) <= 200 else f"{word[:100]}...({len(word):,} characters)" for word in case.arguments]
    return [
        f"cd {case.folder} && {shlex.join(['korbert', *words])}",
        f"left with {outcome.code}; standard input {case.stdin[:200]!r}",
        *(f"| {line[:600]}" for line in outcome.err.rstrip("\n").splitlines()[-4:]),
    ]
