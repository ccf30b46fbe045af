#include "gpu_query.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <dtrain/base/ask_program.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/machine.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/checkup.hpp>

namespace dtrain::cluster {
namespace {

using std::chrono::milliseconds;
constexpr std::array kPlaces{"/usr/bin/nvidia-smi", "/usr/local/bin/nvidia-smi", "/opt/bin/nvidia-smi"};

std::string program() {
  std::error_code ignored;
  for (const char* place : kPlaces) {
    if (std::filesystem::exists(place, ignored)) return place;
  }
  return {};
}

auto query(const std::string& program, const std::string& fields, milliseconds patience) {
  Spawn child = spawn_of({program, fmt::format("--query-gpu={}", fields), "--format=csv,noheader,nounits"});
  child.environment = own_environment();
  return try_asking(std::move(child), patience);
}

// Sets either gpus or gpu_error.
void ask(const std::string& program, milliseconds patience, Checkup& checkup) {
  const std::string fields = fmt::format("{}", fmt::join(kGpuFields, ","));
  auto answer = query(program, fmt::format("{},{}", fields, fmt::join(kErrorFields, ",")), patience);
  // An older driver refuses all fields because of one.
  if (answer && answer->output.find("not a valid field") != answer->output.npos) {
    answer = query(program, fields, patience);
  }
  if (!answer) {
    checkup.gpu_error = fmt::format("nvidia-smi gave no answer within {}", format_duration(patience));
  } else if (answer->code != 0) {
    checkup.gpu_error =
        fmt::format("nvidia-smi ended with exit code {}: {}", answer->code, trim(answer->output + answer->errors));
  } else {
    checkup.gpus = gpus_in(answer->output);
  }
}

}  // namespace

Checkup look_at_gpus(milliseconds patience) {
  Checkup checkup{.devices = nvidia_device_count("/dev", std::nullopt)};
  try {
    const std::string found = program();
    if (!found.empty()) ask(found, patience, checkup);
    if (found.empty() && checkup.devices > 0) checkup.gpu_error = "nvidia-smi is not there";
  } catch (const Error& error) {
    checkup.gpu_error = error.what();
  }
  return checkup;
}

}  // namespace dtrain::cluster
