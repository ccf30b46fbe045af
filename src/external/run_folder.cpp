#include "run_folder.hpp"

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::external {
namespace {

constexpr std::uintmax_t kLongestErrorFile = 1 << 20;

}  // namespace

Path rank_folder(const Path& job_folder, int rank) { return job_folder / "run" / std::to_string(rank); }

Path progress_file(const Path& job_folder) { return job_folder / "run" / "progress"; }

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
