"""The papers' models that mteb 2.26.24 lacks. What is not known of a model is None."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from coreb_tasks.facts.coreb import COREB
from coreb_tasks.facts.cpret import CPRET
from coreb_tasks.facts.onec import ONEC
from coreb_tasks.facts.schema import Benchmark


@dataclass(frozen=True)
class Model:
    """One model: constants only.

    Attributes:
        name: on the hub, or ours for a baseline.
        kind: what loads it. ``encoder``: sentence-transformers; ``yes-no``: a causal language model that judges a
            query and a document; ``bm25``: no model but a formula.
        revision: full hash of the hub's commit, or None for the newest.
        max_tokens: inputs are cut there, as its authors do; None for no limit.
        dims: of its vectors; more than one where prefixes of a vector are vectors too (Matryoshka), longest first.
        license: in mteb's words.
        base: the model that it was trained from.
        parameters: how many it has.
        paper: the benchmark whose paper brings it.
        training_code: where it lies.
        reference: page about it; None for its page on the hub.
        trust_remote_code: whether code from its repository runs.
        prompts: before queries and documents, by mteb's key (``query``, ``document``), whatever the task.
        task_prompts: the same as a pair, by kind of task: the second part of a task's name (``CoREB-T2C-Search``).
        system: system text of a yes-no model.
    """

    name: str
    kind: Literal["encoder", "yes-no", "bm25"]
    revision: str | None = None
    max_tokens: int | None = None
    dims: tuple[int, ...] = ()
    license: str | None = None
    base: str | None = None
    parameters: int | None = None
    paper: Benchmark | None = None
    training_code: str | None = None
    reference: str | None = None
    trust_remote_code: bool = False
    prompts: dict[str, str] = field(default_factory=dict)
    task_prompts: dict[str, tuple[str, str]] = field(default_factory=dict)
    system: str | None = None


# Appendix B.3 of the paper: Qwen3-Reranker's, without its last full stop.
COREB_SYSTEM = (
    "Judge whether the Document meets the requirements based on the Query and the Instruct provided. "
    'Note that the answer can only be "yes" or "no"'
)

# As on the model's card. None of its prompts is for two problem texts (CPRet's P2Dup and S2Full), so that these go
# without one.
_CODE_FOR_TEXT = ("Find the most relevant code snippet given the following query:\n", "Candidate code snippet:\n")
JINA_CODE_PROMPTS = {
    "T2C": _CODE_FOR_TEXT,
    "Ebench": _CODE_FOR_TEXT,
    "C2C": (
        "Find an equivalent code snippet given the following code snippet:\n",
        "Candidate code snippet:\n",
    ),
    "C2T": (
        "Find the most relevant comment given the following code snippet:\n",
        "Candidate comment:\n",
    ),
}

_CPRET_CODE = "https://github.com/coldchair/CPRet"

_ROWS = (
    Model(
        name="hq-bench/coreb-code-reranker",
        kind="yes-no",
        revision="24d2ad50bb4a53149cfd3c42c0e966e954cdbcf1",
        max_tokens=4096,
        base="Qwen/Qwen3-Reranker-4B",
        paper=COREB,
        system=COREB_SYSTEM,
    ),
    *(
        Model(
            name=f"coldchair16/{name}",
            kind="encoder",
            max_tokens=1024,
            dims=(2304,),
            license="cc-by-nc-4.0",
            base="Salesforce/SFR-Embedding-Code-2B_R",
            paper=CPRET,
            training_code=_CPRET_CODE,
            trust_remote_code=True,
        )
        for name in ("CPRetriever-Code", "CPRetriever-Prob")
    ),
    Model(
        name="coldchair16/CPRetriever-Prob-Qwen3-4B-2510",
        kind="encoder",
        max_tokens=2048,
        dims=(2560,),
        license="cc-by-nc-4.0",
        base="Qwen/Qwen3-Embedding-4B",
        paper=CPRET,
        training_code=_CPRET_CODE,
        trust_remote_code=True,  # as its authors load it
    ),
    Model(
        name="PruhaNLP/USER2-1C-code",
        kind="encoder",
        revision="b587ab2eaf543f8c2e6bdb6a795d656feaf16ca4",
        max_tokens=8192,
        dims=(768, 512, 384, 256, 128, 64, 32),
        base="deepvk/USER2-base",
        paper=ONEC,
        prompts={"query": "search_query: ", "document": "search_document: "},
    ),
    Model(
        name="coreb-tasks/bm25-okapi",
        kind="bm25",
        revision="1",
        parameters=0,
        paper=ONEC,
        reference=ONEC.reference,
    ),
    Model(
        name="jinaai/jina-code-embeddings-0.5b",
        kind="encoder",
        max_tokens=32768,
        dims=(896, 512, 256, 128, 64),
        license="cc-by-nc-4.0",
        base="Qwen/Qwen2.5-Coder-0.5B",
        parameters=494_000_000,
        task_prompts=JINA_CODE_PROMPTS,
    ),
    Model(
        name="jinaai/jina-code-embeddings-1.5b",
        kind="encoder",
        max_tokens=32768,
        dims=(1536, 1024, 512, 256, 128),
        license="cc-by-nc-4.0",
        base="Qwen/Qwen2.5-Coder-1.5B",
        parameters=1_540_000_000,
        task_prompts=JINA_CODE_PROMPTS,
    ),
    Model(
        name="Salesforce/SFR-Embedding-Code-400M_R",
        kind="encoder",
        max_tokens=8192,
        dims=(1024,),
        trust_remote_code=True,
    ),
)
MODELS: dict[str, Model] = {model.name: model for model in _ROWS}
