#include "run_folder.hpp"

#include <limits>
#include <optional>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/elastic/job_files.hpp>
#include <dtrain/external/program.hpp>

namespace dtrain::external {
namespace {

constexpr std::uintmax_t kLongestErrorFile = 1 << 20;
constexpr const char* kRun = "run";

// "run/3/saved" -> 3; nothing for a place that is of no rank.
std::optional<int> rank_of_place(const Path& place) {
  auto part = place.begin();
  if (part == place.end() || *part != kRun || ++part == place.end()) return std::nullopt;
  const auto rank = parse_integer(part->string());
  if (!rank || *rank < 0 || *rank > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*rank);
}

}  // namespace

Path rank_folder(const Path& job_folder, int rank) { return job_folder / kRun / std::to_string(rank); }

Path progress_file(const Path& job_folder) { return job_folder / kRun / "progress"; }

bool is_run_file(const Path& place, bool is_folder) {
  const Path here;
  const std::optional<int> rank = rank_of_place(place);
  if (is_folder) return place == kRun || (rank && place == rank_folder(here, *rank));
  if (place == progress_file(here)) return true;
  return rank && (place == deadline_file(here, *rank) || place == saved_file(here, *rank) ||
                  place == error_file(here, *rank) || place == hosts_copy(here, *rank));
}

std::int64_t read_progress(const Path& job_folder) {
  std::error_code ignored;
  if (!std::filesystem::exists(progress_file(job_folder), ignored)) return 0;
  try {
    return parse_integer(trim(read_file(progress_file(job_folder)))).value_or(0);
  } catch (const Error&) {  // it is being written
    return 0;
  }
}

Path deadline_file(const Path& job_folder, int rank) { return rank_folder(job_folder, rank) / "deadline.json"; }

Path hosts_copy(const Path& job_folder, int rank) { return rank_folder(job_folder, rank) / elastic::job_file::kHosts; }

Path saved_file(const Path& job_folder, int rank) { return rank_folder(job_folder, rank) / "saved"; }

Path error_file(const Path& job_folder, int rank) { return rank_folder(job_folder, rank) / "error.json"; }

std::string read_error_file(const Path& job_folder, int rank) {
  const Path file = error_file(job_folder, rank);
  std::error_code none;
  if (const auto size = std::filesystem::file_size(file, none); none || size > kLongestErrorFile) return {};
  try {
    const Json json = Json::parse(read_file(file), file.string());
    const Json* message = &json.at("message");
    if (!message->is_string()) message = &message->at("message");
    return std::string(trim(message->as_string()));
  } catch (const Error&) {  // the program may have been killed while it wrote
    return {};
  }
}

void write_deadline(const Path& job_folder, int rank, std::chrono::milliseconds grace, const std::string& reason) {
  const auto end = std::chrono::system_clock::now() + grace;
  const double seconds = std::chrono::duration<double>(end.time_since_epoch()).count();
  try {
    write_file_atomic(deadline_file(job_folder, rank),
                      Json::object({{"deadline", seconds}, {"reason", reason}}).dump() + "\n");
  } catch (const Error&) {  // a full disk must not keep the signal from the program
  }
}

}  // namespace dtrain::external
