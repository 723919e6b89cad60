"""The one error that a fault of the data raises."""


class DataError(ValueError):
    """Says where the fault is (file, row, id), what was given, what was expected, and what to do."""

    def __init__(self, place: str, problem: str, advice: str = "Fetch the data set again, or repair the file.") -> None:
        super().__init__(f"{place}: {problem}. {advice}")
