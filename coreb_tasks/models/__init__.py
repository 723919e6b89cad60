"""Model metadata for mteb: the papers' models that mteb lacks, and local checkpoints."""

# First: it runs the start-up hook, which must not meet a half-imported module of this package.
import mteb  # noqa: F401
