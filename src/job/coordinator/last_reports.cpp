#include "last_reports.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
constexpr auto kBetweenWrites = 1s;

}  // namespace

// The file of a job before this one names a checkpoint that this job may not go on from.
void LastReports::begin(const std::optional<train::CheckpointName>& start) {
  std::filesystem::remove(folder_.latest());
  newest_ = start ? Path(start->stem() + ".json") : Path();
  is_known_ = true;
}

void LastReports::on_trained(const train::StepReport& report) {
  trained_ = counts_steps_ ? std::pair(report.epoch, report.step + 1) : std::pair(0u, std::uint64_t{0});
}

// A worker that was rank 0 before may report its last checkpoint after the next rank 0 reported a newer one.
void LastReports::on_checkpoint(const Path& file) {
  if (file.extension() != ".safetensors") return;
  unsaved_.clear();
  const Path manifest = Path(file).replace_extension(".json");
  if (is_older(manifest, newest())) return;
  newest_ = manifest;
  is_written_ = false;
  write();
}

void LastReports::catch_up(Time now) {
  if (is_written_ || now < next_write_) return;
  next_write_ = now + kBetweenWrites;
  write();
}

void LastReports::write() {
  write_file_atomic(folder_.latest(), newest_.string());
  is_written_ = true;
}

// Names that are no checkpoints of the prefix have no age. Texts do not compare: an epoch of five digits follows 9999.
bool LastReports::is_older(const Path& manifest, const Path& other) const {
  if (!prefix_) return false;
  const auto name = train::name_of_manifest(*prefix_, manifest), than = train::name_of_manifest(*prefix_, other);
  return name && than && std::pair(name->epoch, name->step) < std::pair(than->epoch, than->step);
}

bool LastReports::has_checkpoint() { return !newest().empty(); }

std::string LastReports::lost() {
  if (!unsaved_.empty()) return unsaved_;
  if (!trained_ || !prefix_) return {};
  const auto saved = train::name_of_manifest(*prefix_, newest());
  if (!saved) return "nothing was saved, all steps are lost";
  if (std::pair(saved->epoch, saved->step) >= *trained_) return {};
  return fmt::format("the steps since {} are lost", saved->stem());
}

const Path& LastReports::newest() {
  if (is_known_) return newest_;
  try {
    if (file_exists(folder_.latest())) newest_ = read_file(folder_.latest());
    is_known_ = true;
  } catch (const Error&) {  // the folder is not available now
  }
  return newest_;
}

}  // namespace dtrain::job
