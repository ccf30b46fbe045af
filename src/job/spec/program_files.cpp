#include "program_files.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string_view>
#include <system_error>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/elastic/admission_check.hpp>
#include <dtrain/external/program.hpp>

namespace dtrain::job {
namespace {

// A long log is rotated: NAME.log becomes NAME.log.1.
std::string_view without_rotation(std::string_view name) {
  const std::string_view log = name.substr(0, name.rfind('.'));
  return log.ends_with(".log") && parse_integer(name.substr(log.size() + 1)) ? log : name;
}

// "worker1.0.log" of a worker, "worker1.0.ps0.log" of a parameter server beside it, "agent_worker1.log",
// "prepare_worker1.log".
bool is_log_of(const std::string& host, std::string_view name) {
  if (!name.ends_with(".log")) return false;
  if (name == "agent_" + host + ".log" || name == elastic::prepare_log({}, host).filename()) return true;
  return name.starts_with(host + ".") && std::isdigit(static_cast<unsigned char>(name[host.size() + 1])) != 0;
}

bool is_log(const Path& name, const std::set<std::string>& hosts) {
  const std::string file = name.string();
  return name == elastic::job_file::kCoordinatorLog ||
         std::ranges::any_of(hosts, [&](const std::string& host) { return is_log_of(host, without_rotation(file)); });
}

bool is_prepare_success(const Path& place, const std::set<std::string>& hosts) {
  return std::ranges::any_of(hosts,
                             [&](const std::string& host) { return place == elastic::prepare_success_file({}, host); });
}

std::string text_or_nothing(const Path& file) {
  try {
    return read_file(file);
  } catch (const Error&) {
    return "";
  }
}

// Those of the list, and those that left it.
std::set<std::string> hosts_in_records(const JobFolder& folder) {
  std::set<std::string> hosts;
  for (const elastic::HostLine& host : elastic::parse_host_file(text_or_nothing(folder.hosts())).hosts)
    hosts.insert(host.name);
  constexpr std::size_t kHostWord = 2;
  for (const std::string& line : split(text_or_nothing(folder.log()), '\n')) {
    const std::vector<std::string> words = split(line, ' ');
    if (words.size() > kHostWord) hosts.insert(words[kHostWord]);
  }
  return hosts;
}

// `place`: its path in the job folder. `hosts`: all that the job had. False in doubt, because a file of the program may
// be the only copy of a result.
bool is_made_by_dtrain(const Path& place, bool is_folder, const std::set<std::string>& hosts) {
  const JobFolder here{};
  if (external::is_run_file(place, is_folder)) return true;
  if (is_folder) return place == here.logs() || place == here.tiebreakers();
  const std::array files = {here.hosts(),       here.log(),  here.events(),      here.journal(),
                            here.coordinator(), here.lock(), here.agents_lock(), Path(elastic::job_file::kMetrics)};
  if (std::ranges::find(files, place) != files.end() || is_prepare_success(place, hosts)) return true;
  if (place.parent_path() == here.logs()) return is_log(place.filename(), hosts);
  return place.parent_path() == here.tiebreakers() && parse_integer(place.filename().string()).has_value();
}

// Appends what is below `place`, a folder of dtrain's or the job folder itself. Links are not followed.
void collect_files_of_program(const Path& root, const Path& place, const std::set<std::string>& hosts,
                              std::vector<std::string>& found) {
  std::error_code error;
  std::filesystem::directory_iterator entry(root / place, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    std::error_code unknown;
    const auto kind = entry->symlink_status(unknown).type();
    const bool is_folder = kind == std::filesystem::file_type::directory;
    const bool is_plain = is_folder || kind == std::filesystem::file_type::regular;
    const Path below = place / entry->path().filename();
    if (!is_plain || !is_made_by_dtrain(below, is_folder, hosts)) {
      found.push_back(below.string());
    } else if (is_folder) {
      collect_files_of_program(root, below, hosts, found);
    }
  }
  if (error) found.push_back(place.empty() ? "." : place.string());
}

}  // namespace

std::vector<std::string> files_of_program(const JobFolder& folder) {
  std::vector<std::string> found;
  collect_files_of_program(folder.path, {}, hosts_in_records(folder), found);
  std::ranges::sort(found);
  return found;
}

}  // namespace dtrain::job
