"""The replay generator: writes what the systems of a large GPU cluster would have exported. Imports nothing of ours."""
