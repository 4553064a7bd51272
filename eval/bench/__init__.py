"""Speed and memory of decoding after a long trace: caches take turns, with the paper's memory model beside them."""
