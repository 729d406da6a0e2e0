"""Finding memory by its words: analysis, scoring and snippets over the state's postings."""
