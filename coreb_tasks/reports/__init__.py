"""Reports over result files: which scores there are, the tables and plots they make, and the page that holds them.

Knows no mteb: reading a hundred results takes less time than importing it.
"""
