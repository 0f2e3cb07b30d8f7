import pytest
from pydantic import ValidationError

from korbert.tasks.question_answering.settings import QuestionAnsweringSettings


def test_the_stride_must_leave_windows_room_to_advance():
    with pytest.raises(ValidationError, match=r"leaves 60 pieces of context .* needs more than stride 64: raise"):
        QuestionAnsweringSettings(max_length=128, stride=64)


def test_a_threshold_without_effect_is_refused():
    with pytest.raises(ValidationError, match=r"threshold 0\.5 is for unanswerable = true"):
        QuestionAnsweringSettings(threshold=0.5)
    with pytest.raises(ValidationError, match="finite number"):
        QuestionAnsweringSettings(unanswerable=True, threshold=float("nan"))
