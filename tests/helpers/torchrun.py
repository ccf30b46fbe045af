#!/usr/bin/env python3
"""torchrun of PyTorch 1.13 on any Python 3. From 3.11 on its default of --redirects is read as nothing: the loop that looks
for it no longer visits a flag that is zero."""

import torch.distributed.run
from torch.distributed.elastic.multiprocessing.api import Std

Std.from_str = classmethod(lambda cls, text: cls(int(text)))

if __name__ == "__main__":
    torch.distributed.run.main()
