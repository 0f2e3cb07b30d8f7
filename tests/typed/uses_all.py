"""A program that uses all of korbert's Python: tests/test_typing.py has mypy --strict read it."""

from pathlib import Path
from typing import assert_type

import korbert
import korbert.sklearn
from korbert.tasks.token_classification.tagger import TaggedSpan


def uses_all() -> None:
    model = korbert.load("korbert-mini", device="cpu", precision="fp32")
    assert_type(model, korbert.Model)
    assert_type(model.tag("이순신은 무신이다"), list[TaggedSpan])
    assert_type(model.similarity("비가 온다", "비가 내린다"), float)
    print(model.can, model.embed(["가", "나"], pooling="max").shape, model.fill("[MASK]")[0][0].piece)
    assert_type(korbert.models("models"), list[str])
    model.save("models/mini")
    print(model.push_to_hub("me/mini", private=True))

    result = korbert.finetune(model, "my.csv", text="문장", label="감정", test=[("좋다", "긍정")], epochs=1)
    assert_type(result, korbert.Finetuned)
    assert_type(result.report(), Path)
    accuracy: float = result.scores["accuracy"]
    print(accuracy, result.baselines, result.interval, result.model.predict(["정말 좋다"]))
    korbert.finetune("korbert-mini", task="klue-nli", data="data", seeds=3, output=Path("models/nli"))

    made = korbert.run("mine.toml", from_="vocab", to="shard", root="artifacts", data="data", settings={"seed": 1})
    assert_type(made, korbert.Run)
    assert_type(korbert.pretrain("mine.toml", device="cpu").model, korbert.Model)
    print(made.folder / "clean", made.tasks["nsmc"].scores, made.figures)

    found = korbert.evaluate(result.model, [{"text": "좋다", "label": "긍정"}], noise=True)
    assert_type(found, korbert.Evaluation)
    print(found.scores["accuracy"], found.intervals["accuracy"], found.rows[0]["prediction"], found.notes)
    compared = korbert.compare(result, "models/other", model="pretrained")
    assert_type(compared, korbert.Comparison)
    print(compared.names, compared.details, compared.report("page.html"))

    named = korbert.zero_shot(
        ["환불", "배송"], ["환불해 주세요", "배송이 언제 오나요"], {"배송": "언제 오는지 묻는다"}, model
    )
    assert_type(named, korbert.Model)
    print([one.text for one in korbert.suggest(named, ["언제 와요?"], 1)])

    index = korbert.Index.create("texts.index", model)
    index.add([("1", "대출을 신청하고 싶어요")])
    print(index.search(["대출"], top=1)[0][0].text, korbert.Tokenizer.load("korbert-mini").encode("학교에 간다").pieces)

    classifier = korbert.sklearn.TextClassifier("korbert-mini", epochs=1).fit(["가", "나"], [0, 1])
    print(classifier.predict(["가"]).tolist(), classifier.model_, korbert.__version__)
    print(korbert.sklearn.TextRegressor().fit(["가", "나"], [0.5, 1.0]).predict(["가"]).shape)
    print(korbert.sklearn.TextVectorizer(layer=-1, size=8).fit_transform(["가"]))
    try:
        korbert.load("none")
    except (korbert.ModelError, korbert.SettingsError, korbert.CorpusError, korbert.ArtifactError) as error:
        raise SystemExit(str(error)) from error
    except korbert.KorbertError:
        raise
