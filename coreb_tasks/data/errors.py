"""The errors that a fault of what is read raises."""


class _PlacedError(ValueError):
    advice: str

    def __init__(self, place: str, problem: str, advice: str | None = None) -> None:
        super().__init__(f"{place}: {problem}. {advice or self.advice}")


class DataError(_PlacedError):
    """Says where the fault of the data is (file, row, id), what was given, what was expected, and what to do."""

    advice = "Fetch the data set again, or repair the file."


class PredictionsError(_PlacedError):
    """Says where the fault of a run that was given is (file, query, document), what was expected, and what to do."""

    advice = "Write the predictions again (--prediction-folder), or repair the file."
