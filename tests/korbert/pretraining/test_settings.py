import subprocess
import sys

import pytest
from pydantic import ValidationError

from korbert.pretraining.settings import MaskingSettings


def test_shares_fit_into_one():
    with pytest.raises(ValidationError, match=r"mask_share 0\.9 \+ random_share 0\.2 > 1: lower one of them"):
        MaskingSettings(mask_share=0.9, random_share=0.2)


@pytest.mark.parametrize("package", ["pretraining", "training"])
def test_settings_import_neither_torch_nor_numpy(package):
    code = f"import sys, korbert.{package}.settings; print({{'torch', 'numpy', 'datasets'}} & set(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "set()"
