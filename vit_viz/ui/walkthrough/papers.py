"""The sections of papers that the steps point to; links only."""

from __future__ import annotations

Paper = tuple[str, str]

VIT = ("Dosovitskiy et al. 2021, section 3.1", "https://arxiv.org/abs/2010.11929")
VIT_FILTERS = ("Dosovitskiy et al. 2021, section 4.5 and Fig. 7", "https://arxiv.org/abs/2010.11929")
VIT_POSITIONS = ("Dosovitskiy et al. 2021, section 3.1 and appendix D.4", "https://arxiv.org/abs/2010.11929")
ATTENTION = ("Vaswani et al. 2017, section 3.2.1", "https://arxiv.org/abs/1706.03762")
HEADS = ("Vaswani et al. 2017, section 3.2.2", "https://arxiv.org/abs/1706.03762")
WAVES = ("Vaswani et al. 2017, section 3.5 (waves)", "https://arxiv.org/abs/1706.03762")
ROTARY = ("Su et al. 2021, section 3 (rotary)", "https://arxiv.org/abs/2104.09864")
REGISTERS = ("Darcet et al. 2024, section 2.2 (registers)", "https://arxiv.org/abs/2309.16588")
GELU = ("Hendrycks & Gimpel 2016, section 2 (GELU)", "https://arxiv.org/abs/1606.08415")
PRE_NORM = ("Xiong et al. 2020, section 3 (pre-norm and post-norm)", "https://arxiv.org/abs/2002.04745")
LENS = ("Belrose et al. 2023, section 2 (logit lens)", "https://arxiv.org/abs/2303.08112")
