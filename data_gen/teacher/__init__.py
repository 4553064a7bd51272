"""The teacher: any model behind an OpenAI-compatible endpoint, asked to summarise one paragraph at a time."""
