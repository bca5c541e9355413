"""The report's eight chapters: a module each with a function ``chapter(view)``; ``missing`` is a half of the last."""
