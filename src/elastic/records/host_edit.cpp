#include "host_edit.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::elastic {
namespace {

// A file that is missing lists no host.
std::string host_file_text(const Path& file) {
  try {
    return file_exists(file) ? read_file(file) : "";
  } catch (const Error& error) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(file, ignored)) throw;
    throw Error(error.what(), "the job keeps its hosts: move it away, and the same command writes a file with them");
  }
}

std::vector<std::string> texts_at(const Json& request, std::string_view key) {
  std::vector<std::string> texts;
  if (const Json* list = request.find(key)) {
    for (const Json& text : list->as_array()) texts.push_back(text.as_string());
  }
  return texts;
}

void check_share(const std::vector<std::string>& removed, std::size_t present, const Json& request) {
  const Json* any_number = request.find("any_number");
  if (2 * removed.size() <= present || (any_number && any_number->as_bool())) return;
  throw UsageError(fmt::format("this removes {} of {} hosts", removed.size(), present),
                   fmt::format("the same command with setting 'yes' removes {} all the same", join(removed, ", ")));
}

// Removes what a crash or an unfinished write left: zero bytes, and a last line without an end, unless it is that of a
// host of the job.
void cut_torn_end(std::string& text, const std::vector<HostLine>& present, int slots,
                  std::vector<std::string>& repairs) {
  if (text.find('\0') != text.npos) {
    repairs.emplace_back("a crash left zero bytes in it: it is written anew");
    text.clear();
  }
  const std::string last = text.substr(text.rfind('\n') + 1);
  const auto is_of_job = [&](const HostLine& host) { return std::ranges::find(present, host) != present.end(); };
  if (std::ranges::all_of(parse_host_file(last, slots).hosts, is_of_job)) return;
  repairs.push_back(fmt::format("its last line, '{}', has no end and is left out", last));
  text.resize(text.size() - last.size());
}

std::set<std::string> name_set(const std::vector<HostLine>& hosts) {
  std::set<std::string> names;
  for (const HostLine& host : hosts) names.insert(host.name);
  return names;
}

// A damaged line that holds the name of a host keeps its place for it.
void write_back(std::string& text, const std::vector<HostLine>& present, int slots,
                const std::vector<std::string>& added, std::vector<std::string>& repairs) {
  const HostList list = parse_host_file(text, slots);
  std::set<std::string> named = name_set(list.hosts);
  named.merge(name_set(parse_host_file(join(added, "\n")).hosts));
  std::vector<std::string> lacking;
  for (const HostLine& host : present) {
    const auto means_it = [&](const std::string& line) { return line.find(host.name) != line.npos; };
    if (named.contains(host.name) || std::ranges::any_of(list.doubtful, means_it)) continue;
    if (!text.empty() && !text.ends_with('\n')) text += '\n';
    text += host.name + (host.slots == slots ? "\n" : fmt::format(" slots={}\n", host.slots));
    lacking.push_back(host.name);
  }
  if (lacking.empty()) return;
  repairs.push_back(
      fmt::format("it lacked {}, which the job keeps and which the file lists again; "
                  "`dtrain hosts remove` removes a host",
                  join(lacking, ", ")));
}

// A link of another user could lead root to any file.
bool is_trusted_link(const Path& file) {
  struct stat link {};
  return ::lstat(file.c_str(), &link) == 0 && S_ISLNK(link.st_mode) && (link.st_uid == ::geteuid() || link.st_uid == 0);
}

// The file that links lead to, also where it is missing.
Path link_target(Path file) {
  constexpr int kMostLinks = 40;  // as many as the kernel follows
  std::error_code none;
  for (int links = 0; links < kMostLinks && is_trusted_link(file); ++links) {
    file = file.parent_path() / std::filesystem::read_symlink(file, none);
  }
  return file;
}

void replace_text(const Path& file, const std::string& text) {
  AtomicFile replacement(link_target(file));
  replacement.write(text);
  replacement.keep_access();
  replacement.commit();
}

}  // namespace

std::vector<std::string> edit_host_file(const Path& file, const std::vector<HostLine>& present, int slots,
                                        const Json& request) {
  std::vector<std::string> repairs;
  std::string text = host_file_text(file);
  const std::vector<std::string> added = texts_at(request, "add"), removed = texts_at(request, "remove");
  cut_torn_end(text, present, slots, repairs);
  write_back(text, present, slots, added, repairs);
  for (const std::string& line : added) text = with_host(text, line);
  const std::size_t count = parse_host_file(text).hosts.size();
  for (const std::string& name : removed) text = without_host(text, name);
  check_share(removed, count, request);
  if (parse_host_file(text).hosts.empty()) {
    throw UsageError("this leaves the job without a host",
                     "`dtrain stop`, with the same setting 'job-dir', ends the job");
  }
  replace_text(file, text);
  return repairs;
}

}  // namespace dtrain::elastic
