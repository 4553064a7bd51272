"""Word problems in plain English, their thoughts, and the rule by which a teacher summarises them."""

from pathlib import Path

from data_gen.stories.drawing import draw
from data_gen.stories.story import Story
from data_gen.stories.teacher import summarize_paragraph
from data_gen.world import World

FILES = tuple(Path(__file__).with_name(name) for name in ("drawing.py", "story.py", "wording.yaml"))
STORIES = World("stories", "Solve the word problem step by step.", draw, summarize_paragraph, FILES)

__all__ = ["STORIES", "Story", "draw", "summarize_paragraph"]
