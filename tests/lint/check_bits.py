"""Nothing that feeds weights may depend on the machine's libm or on foreign random numbers.

<dtrain/base/math.hpp> and <dtrain/base/random.hpp> give the same bits everywhere; sqrt, fma and rounding are exact.
"""

import re

from lint import Finding, Tree

FOLDERS = ("src/nn/", "src/data/", "src/backend/", "src/comm/", "src/train/")
LIBM = re.compile(r"\bstd::(exp2?|expm1|log(2|10|1p)?|pow|sin|cos|tan|a(sin|cos|tan2?)|sinh|cosh|tanh|erfc?|[tl]gamma|cbrt|hypot)f?\(")
RANDOM = re.compile(r"#\s*include\s*<random>|\bstd::(mt19937|rand\b|random_device|shuffle\b)|\b(s?rand|drand48)\(")

CLEAN = {"src/nn/a.cpp": "float a = std::sqrt(2.0f);\n", "src/cli/b.cpp": "double b = std::log(2.0);\n"}
PLANTED = {"src/nn/a.cpp": "float a = std::exp(2.0f);  // HERE\n#include <random>  // HERE\n// std::exp( in a comment\n"}


def check(tree: Tree) -> list[Finding]:
    found = []
    for path in tree.select(".cpp", ".hpp"):
        if path.startswith(FOLDERS):
            for number, line in tree.lines(path):
                code = line.split("//")[0]
                for pattern, use in ((LIBM, "<dtrain/base/math.hpp>"), (RANDOM, "<dtrain/base/random.hpp>")):
                    match = pattern.search(code)
                    if match:
                        found.append(Finding(path, number, f"{match[0].strip()}: use {use}, the bits are a promise"))
    return found
