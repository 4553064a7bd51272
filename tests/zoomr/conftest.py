"""A toy tokenizer and a tiny model."""

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from tests.zoomr.tiny import VOCABULARY, make_model
from zoomr.summaries.segments import BEGIN_SUMMARY, END_SUMMARY


@pytest.fixture(scope="session")
def tokenizer():
    core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(VOCABULARY)}, unk_token="<pad>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made = PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", bos_token="<s>", eos_token="</s>")
    made.add_special_tokens({"additional_special_tokens": [BEGIN_SUMMARY, END_SUMMARY]})
    return made


@pytest.fixture(scope="session")
def model():
    return make_model()
