#include "job_life.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>

#include "job/spec/job_client.hpp"
#include "job/spec/process_facts.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
constexpr auto kLifeLook = 3s;  // at whether the coordinator lives
// A coordinator that is gone without a word may be followed by another one within this.
constexpr auto kSuccession = 15s;

}  // namespace

bool JobLife::goes_on() {
  const auto now = std::chrono::steady_clock::now();
  std::optional<CoordinatorFile> file;
  try {
    file = record();
  } catch (const Error&) {  // a file server that is away for a moment says nothing about the job
    if (now - alive_ < kSuccession) return true;
    throw;
  }
  if (!file || file->over()) return false;
  if (now < look_) return true;
  look_ = now + kLifeLook;
  if ((file->host == host_name() && is_coordinated(folder_)) || answers(*file)) alive_ = now;
  if (now - alive_ < kSuccession) return true;
  if (has_agents_of_unfinished_job(folder_)) throw without_coordinator(folder_.path.string(), folder_);
  throw RemoteError(fmt::format("{}: the coordinator (process {}) ended without recording the job's end",
                                folder_.path.string(), file->pid),
                    how_to_go_on(*file));
}

bool JobLife::is_over() const {
  const auto file = record();
  return !file || file->over();
}

std::optional<CoordinatorFile> JobLife::record() const {
  return is_listed_or_throw(folder_.coordinator()) ? read_coordinator(folder_) : std::nullopt;
}

}  // namespace dtrain::job
