"""A task of this package as a stock task of mteb, on the same data: what the benchmarks compare with."""

from mteb.abstasks import AbsTaskRetrieval


def stock_task(task):
    """mteb's own retrieval task with the loaded data of a task of ours."""
    task.load_data()

    class Stock(AbsTaskRetrieval):
        metadata = task.metadata

        def load_data(self, *args, **kwargs):
            self.dataset, self.data_loaded = task.dataset, True

    return Stock()
