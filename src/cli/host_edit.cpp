#include "host_edit.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>

#include "job_client.hpp"

namespace dtrain::cli {
namespace {

constexpr std::chrono::seconds kEditPatience{10};

void require_elastic(const JobFolder& folder) {
  const Json job = ask_coordinator(folder, Json::object({{"ask", "list"}}));
  if (job.at("elastic").as_bool()) return;
  throw UsageError(fmt::format("{}: this job keeps its workers from beginning to end", folder.path.string()),
                   "start it with --elastic; `dtrain stop` and --resume keep what it trained");
}

}  // namespace

void edit_hosts(const JobFolder& folder, const std::function<std::string(const std::string&)>& edit) {
  require_elastic(folder);
  const auto lock = FileLock::take(folder.edit_lock(), kEditPatience);
  if (!lock) throw Error(fmt::format("{}: another edit does not end", folder.hosts().string()), "try again");
  const bool there = std::filesystem::exists(folder.hosts());
  write_file_atomic(folder.hosts(), edit(there ? read_file(folder.hosts()) : ""));
  ask_coordinator(folder, Json::object({{"ask", "hosts-changed"}}));
}

}  // namespace dtrain::cli
