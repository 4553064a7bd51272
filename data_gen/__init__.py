"""Training data: traces are prepared, their paragraphs summarised by a teacher, and training rows built of both."""
