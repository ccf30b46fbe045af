"""A library's headers appear in one folder each and never in include/; fmt may be used anywhere in src."""

import re

from lint import Finding, Tree

INCLUDE = re.compile(r"^\s*#\s*include\s*<([^>]+)>")

# Header (or its folder) -> the one folder that may include it.
HOME = {
    "openssl/ssl.h": "src/net/tls/", "openssl/bio.h": "src/net/tls/", "openssl/err.h": "src/net/tls/",
    "nlohmann/": "src/base/", "openssl/": "src/base/", "xxhash.h": "src/base/", "intel-ipsec-mb.h": "src/base/",
    "curl/": "src/net/", "pugixml.hpp": "src/net/", "asio": "src/net/", "libssh/": "src/net/ssh/",
    "turbojpeg.h": "src/data/", "jpeglib.h": "src/data/", "jerror.h": "src/data/", "spng.h": "src/data/", "webp/": "src/data/",
    "zlib.h": "src/data/", "zstd.h": "src/data/",
    "oneapi/": "src/backend/cpu/", "dnnl": "src/backend/cpu/", "omp.h": "src/backend/cpu/",
    "cuda.h": "src/backend/cuda/gpu/", "cuda_runtime.h": "src/backend/cuda/gpu/", "cudnn.h": "src/backend/cuda/gpu/",
    "CLI/": "src/cli/", "toml++/": "src/config/", "ft2build.h": "src/plot/", "freetype/": "src/plot/", "gloo/": "src/comm/gloo/",
    "fmt/": "src/",
}
# Standard C++ headers have no dot and no slash; these come with the system.
SYSTEM = re.compile(r"^(dtrain/.*|[a-z_]+|(sys|net|netinet|arpa|linux)/[a-z_0-9]+\.h|(unistd|ifaddrs|time|fcntl|poll|signal|termios|dirent|"
                    r"errno|pthread|sched|pwd|grp|regex|netdb|dlfcn|link|elf|getopt|glob|fnmatch|spawn|utime|cpuid|immintrin|"
                    r"x86intrin|malloc|execinfo|limits|float|stddef|stdint|stdio|stdlib|string|cxxabi)\.h)$")

CLEAN = {
    "src/net/http.cpp": "#include <curl/curl.h>\n#include <fmt/format.h>\n#include <sys/socket.h>\n#include <vector>\n",
    "include/dtrain/net/http.hpp": "#include <dtrain/base/error.hpp>\n#include <string>\n",
}
PLANTED = {
    "src/train/plan.cpp": "#include <curl/curl.h>  // HERE\n#include <unheard/of.hpp>  // HERE\n",
    "include/dtrain/net/http.hpp": "#include <curl/curl.h>  // HERE\n#include <fmt/format.h>  // HERE\n",
}


def check(tree: Tree) -> list[Finding]:
    found = []
    for path in tree.select(".cpp", ".hpp", ".h", ".inc", under="src/") + tree.select(".hpp", under="include/"):
        for number, line in tree.lines(path):
            match = INCLUDE.match(line)
            reason = why_wrong(path, match[1]) if match else ""
            if reason:
                found.append(Finding(path, number, reason))
    return found


def why_wrong(path: str, header: str) -> str:
    for prefix, home in HOME.items():
        if header.startswith(prefix):
            return "" if path.startswith(home) else f"<{header}> belongs in {home} alone"
    return "" if SYSTEM.match(header) else f"<{header}> has no home: add one to tests/lint/check_third_party.py"
