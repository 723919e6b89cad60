"""Models in folders: which kind they are, what they are called, and that they load as they are."""

import json
import shutil
import socket
import sys

import mteb
import numpy as np
import pytest
from datasets import Dataset
from sentence_transformers import CrossEncoder, SentenceTransformer
from torch.utils.data import DataLoader

from coreb_tasks.models.local import KINDS, LocalModelError, kind_of, local_meta

SAVED = {
    "encoder": "encoder",
    "cross-encoder": "cross-encoder",
    "saved cross-encoder": "cross-encoder",
    "yes-no": "yes-no",
    "plain": None,
}
TEXTS = ["def f(): return 1", "sort a list"]


@pytest.fixture(scope="module")
def saved(save_model, tmp_path_factory):
    """A folder of each kind, as the libraries save it."""
    root = tmp_path_factory.mktemp("saved")
    return {kind: save_model(root / kind.replace(" ", "-"), kind) for kind in SAVED}


@pytest.fixture
def copied(saved, tmp_path):
    """A copy of a saved folder, to be changed."""
    return lambda kind="encoder", name="copy": shutil.copytree(saved[kind], tmp_path / name)


def change(file, **values):
    file.write_text(json.dumps({**json.loads(file.read_text(encoding="utf-8")), **values}), encoding="utf-8")


def inputs(texts):
    return DataLoader(Dataset.from_dict({"id": list(map(str, range(len(texts)))), "text": texts}), batch_size=8)


def load(folder, **options):
    return local_meta(folder, **options).load_model(device="cpu")


def call(method, *given):
    return method(*given, task_metadata=mteb.get_task("CoREB-T2C").metadata, hf_split="test", hf_subset="default")


# Kinds


@pytest.mark.parametrize("kind", [kind for kind, found in SAVED.items() if found])
def test_kinds_are_told_by_the_files(saved, kind):
    assert kind_of(saved[kind]) == SAVED[kind]
    assert local_meta(saved[kind]).model_type == [KINDS[SAVED[kind]]]


def test_an_encoder_of_before_the_class_was_written_is_told_by_its_modules(copied):
    folder = copied()
    (folder / "config_sentence_transformers.json").unlink()
    assert kind_of(folder) == "encoder"


def test_a_folder_without_a_kind_is_an_encoder_where_the_user_says_so(saved):
    with pytest.raises(LocalModelError, match=r"holds BertModel, by which no kind is told.*--kind encoder"):
        kind_of(saved["plain"])
    assert kind_of(saved["plain"], "encoder") == "encoder"
    assert kind_of(saved["yes-no"], "encoder") == "encoder"


@pytest.mark.parametrize(
    ("saved_as", "kind", "says"),
    [
        ("plain", "cross-encoder", "holds BertModel, which is no cross-encoder"),
        ("encoder", "yes-no", "holds SentenceTransformer and BertModel, which is no yes-no; it can be run as encoder"),
        ("saved cross-encoder", "encoder", "holds CrossEncoder and BertForSequenceClassification, which is no encoder"),
        ("encoder", "cross_encoder", "unknown kind cross_encoder, did you mean cross-encoder.*encoder, .*yes-no"),
        ("encoder", "x", "unknown kind x; expected one of"),
    ],
)
def test_a_kind_that_the_files_lack_is_an_error(saved, saved_as, kind, says):
    with pytest.raises(LocalModelError, match=says):
        kind_of(saved[saved_as], kind)


@pytest.mark.parametrize("name", ["SparseEncoder", "MultiVectorEncoder"])
def test_a_class_that_is_none_of_the_kinds_is_an_error_even_with_a_kind(copied, name):
    folder = copied()
    change(folder / "config_sentence_transformers.json", model_type=name)
    for kind in (None, "encoder"):
        with pytest.raises(LocalModelError, match=f"holds a {name}; expected one of SentenceTransformer, CrossEncoder"):
            kind_of(folder, kind)


def test_a_sparse_model_is_told_by_its_modules_where_its_class_is_not_written(copied):
    folder = copied()
    (folder / "config_sentence_transformers.json").unlink()
    modules = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.sparse_encoder.models.MLM"}]
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    with pytest.raises(LocalModelError, match="holds a SparseEncoder"):
        kind_of(folder)


def test_a_folder_that_holds_no_model_names_what_was_looked_for(tmp_path):
    with pytest.raises(LocalModelError, match=r"modules\.json \(sentence-transformers\) or config\.json"):
        kind_of(tmp_path)
    (tmp_path / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(LocalModelError, match=r"config\.json: cannot be read"):
        kind_of(tmp_path)
    (tmp_path / "config.json").write_text("[]", encoding="utf-8")
    with pytest.raises(LocalModelError, match=r"expected a JSON dict, got list"):
        kind_of(tmp_path)


def test_a_classifier_is_no_cross_encoder(save_model, tmp_path):
    for labels in (2, 3):
        folder = save_model(tmp_path / str(labels), "cross-encoder", num_labels=labels)
        with pytest.raises(LocalModelError, match=f"classifier with {labels} labels; expected 1"):
            kind_of(folder)


# Names and hashes


def test_the_same_files_under_the_same_name_are_the_same_model(copied):
    one, other = copied(name="one/model"), copied(name="other/model")
    assert local_meta(one).name == local_meta(other).name == "local/model"
    assert local_meta(one).revision == local_meta(other).revision
    assert len(local_meta(one).revision) == 40


@pytest.mark.parametrize(
    "file", ["model.safetensors", "tokenizer.json", "modules.json", "1_Pooling/config.json", "new.py", "2_Dense/x"]
)
def test_any_file_that_can_change_the_output_makes_another_model(copied, file):
    folder = copied()
    before = local_meta(folder).revision
    (folder / file).parent.mkdir(exist_ok=True)
    with (folder / file).open("a", encoding="utf-8") as stream:
        stream.write("\n")
    assert local_meta(folder).revision != before


def test_a_file_of_mtebs_beside_the_weights_hides_none_of_them(copied):
    folder = copied()
    for beside in ("model_meta.json", "run_settings.jsonl"):
        (folder / beside).touch()
    before = local_meta(folder).revision
    with (folder / "model.safetensors").open("ab") as weights:
        weights.write(b"\0")
    assert local_meta(folder).revision != before


@pytest.mark.parametrize(
    "file",
    [
        "README.md",
        ".git/HEAD",
        ".cache",
        "training_args.bin",
        "optimizer.pt",
        "rng_state_0.pth",
        "__pycache__/x.pyc",
        "results/local__model/1/model_meta.json",
        "results/local__model/1/CoREB-T2C.json",
        "predictions/CoREB-T2C_predictions.json",
    ],
)
def test_what_is_no_part_of_the_model_makes_none(copied, file):
    """Among them results of a run in the model's own folder, which would else never be found again."""
    folder = copied()
    if file.startswith("results/"):
        (folder / file).parent.mkdir(parents=True)
        for beside in ("model_meta.json", "run_settings.jsonl"):
            (folder / file).with_name(beside).touch()
    before = local_meta(folder).revision
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text("new", encoding="utf-8")
    assert local_meta(folder).revision == before


def test_a_file_that_moves_makes_another_model(copied):
    folder = copied()
    before = local_meta(folder).revision
    (folder / "tokenizer.json").rename(folder / "1_Pooling" / "tokenizer.json")
    assert local_meta(folder).revision != before


def test_links_are_followed(saved, tmp_path):
    """As in the hub's cache."""
    folder = tmp_path / saved["encoder"].name
    folder.mkdir()
    for part in saved["encoder"].iterdir():
        (folder / part.name).symlink_to(part)
    (folder / "1_Pooling_again").symlink_to(folder)  # a circle ends
    assert local_meta(folder).revision == local_meta(saved["encoder"]).revision
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.json").symlink_to(tmp_path / "gone")
    with pytest.raises(LocalModelError, match=r"tokenizer\.json: cannot be read"):
        local_meta(folder)


def test_the_way_in_which_a_folder_is_run_is_part_of_the_revision(saved):
    folder = saved["yes-no"]
    ways = [{}, {"kind": "encoder"}, {"trust_remote_code": True}]
    assert len({local_meta(folder, **way).revision for way in ways}) == 3
    assert local_meta(folder, kind="yes-no").revision == local_meta(folder).revision


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("модель й", "local/модель-й"),
        ("a__b___c", "local/a_b_c"),
        ("x:y?z", "local/x-y-z"),
        ("?", "local/model"),
        ("n" * 200, f"local/{'n' * 100}"),
    ],
)
def test_names_can_be_those_of_a_folder_of_results(copied, folder, name):
    assert local_meta(copied(name=folder)).name == name


def test_the_folder_that_one_stands_in_has_its_name(copied, monkeypatch):
    folder = copied(name="here")
    monkeypatch.chdir(folder)
    assert local_meta(type(folder)()).name == "local/here"


# Loading


@pytest.fixture
def no_network(monkeypatch):
    """Not told to be offline, and a program that asks for a connection fails."""

    def connect(*args, **kwargs):
        pytest.fail("a connection was asked for")

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr(socket, "getaddrinfo", connect)
    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.mark.parametrize("kind", ["encoder", "plain"])
def test_an_encoder_gives_the_vectors_of_sentence_transformers(saved, no_network, kind):
    model = load(saved[kind], kind="encoder")
    expected = SentenceTransformer(str(saved[kind]), device="cpu").encode(TEXTS)
    assert np.allclose(call(model.encode, inputs(TEXTS)), expected, atol=1e-6)
    assert model.mteb_model_meta.name == f"local/{saved[kind].name}"


@pytest.mark.parametrize("kind", ["cross-encoder", "saved cross-encoder"])
def test_a_cross_encoder_gives_the_scores_of_sentence_transformers(saved, no_network, kind):
    model = load(saved[kind])
    expected = CrossEncoder(str(saved[kind]), device="cpu").predict([tuple(TEXTS)])
    scores = call(model.predict, inputs(TEXTS[:1]), inputs(TEXTS[1:]))
    assert np.allclose(scores, expected, atol=1e-6)


def test_a_yes_no_reranker_gives_probabilities(saved, no_network):
    (score,) = call(load(saved["yes-no"]).predict, inputs(TEXTS[:1]), inputs(TEXTS[1:]))
    assert 0 < score < 1


def test_similarity_is_the_models_own(copied):
    folder = copied()
    assert local_meta(folder).similarity_fn_name.value == "cosine"
    change(folder / "config_sentence_transformers.json", similarity_fn_name="dot")
    assert local_meta(folder).similarity_fn_name.value == "dot"
    vectors = np.array([[2.0, 0.0]], dtype=np.float32)
    assert load(folder).similarity(vectors, vectors).item() == 4


def test_code_of_a_folders_own_is_run_only_where_it_is_trusted(copied, tmp_path, monkeypatch):
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    folder = copied()
    modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    modules[1]["type"] = "own_pooling.OwnPooling"
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    source = "from sentence_transformers.sentence_transformer.modules import Pooling\n\n\nclass OwnPooling(Pooling):\n"
    (folder / "own_pooling.py").write_text(f"{source}    pass\n", encoding="utf-8")
    with pytest.raises(LocalModelError, match=r"code of its own; if you trust it, pass --trust-remote-code$"):
        load(folder)
    assert type(load(folder, trust_remote_code=True).model[1]).__name__ == "OwnPooling"


@pytest.mark.parametrize("kind", ["encoder", "cross-encoder", "yes-no"])
def test_a_model_without_its_weights_is_an_error_of_one_line(copied, kind):
    folder = copied(kind)
    (folder / "model.safetensors").unlink()
    with pytest.raises(LocalModelError, match=rf"cannot be loaded as the kind {kind} \(.*safetensors") as error:
        load(folder)
    assert "\n" not in str(error.value)
