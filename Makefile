.PHONY: check lint types test
check: lint types test
lint:
	ruff check .
	ruff format --check .
types: # on the tree as it is installed, with the two outer folders in the package
	rm -rf build/types && mkdir -p build/types
	cp -r coreb_tasks build/types
	cp -r wrappers task_metadata build/types/coreb_tasks
	cd build/types && mypy --config-file ../../pyproject.toml --cache-dir ../mypy -p coreb_tasks
test:
	pytest
