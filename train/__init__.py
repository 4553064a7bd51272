"""Fine-tuning: `train.sft` trains an adapter on the built rows, `train.export` merges it into its base."""
