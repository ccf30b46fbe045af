#include "build_facts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/backend/cuda.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::doctor {
namespace {

std::string gpu_fact() {
  const backend::CudaReport report = backend::look_for_cuda();
  if (!report.problem.empty()) return report.problem;
  std::string text = fmt::format("driver for CUDA {}", report.driver);
  for (const backend::CudaLibrary& library : report.libraries) {
    text += library.problem.empty() ? fmt::format(", {} {}", library.name, library.version) : ", " + library.problem;
  }
  return text;
}

// "fmt 9.1.0|zlib 1.2.13|"; a version may be missing.
Json libraries_of(std::string_view list) {
  Json libraries = Json::object();
  for (const std::string& library : split(list, '|')) {
    const std::size_t blank = std::min(library.find(' '), library.size());
    if (blank + 1 < library.size()) libraries[library.substr(0, blank)] = library.substr(blank + 1);
  }
  return libraries;
}

}  // namespace

Json build_facts() {
  const std::string commit = DTRAIN_COMMIT;
  return Json::object({{"schema", "dtrain.version/1"},
                       {"version", DTRAIN_VERSION},
                       {"commit", commit.empty() ? Json() : Json(commit)},
                       {"compiler", DTRAIN_COMPILER},
                       {"build", DTRAIN_BUILD},
                       {"cpu_kernels", backend::make_cpu_backend()->description()},
                       {"gpus", gpu_fact()},
                       {"libraries", libraries_of(DTRAIN_LIBRARIES)}});
}

}  // namespace dtrain::doctor
