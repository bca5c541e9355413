"""The report's eight chapters: a module each, a function ``chapter(view)`` in each."""
