#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/elastic/host_file.hpp>

namespace dtrain::elastic {
namespace {

constexpr std::chrono::milliseconds kLookInterval{500};
constexpr std::chrono::seconds kPatience{5};   // beyond the time to settle, for an editor that is not done
constexpr std::uintmax_t kMaxSize = 16 << 20;  // no host file is so large

// Opens the file anew each time, which makes NFS ask its server. nullopt: no such file, or not readable.
std::optional<std::string> read_now(const Path& path) {
  std::error_code error;
  if (!is_listed(path) || !std::filesystem::is_regular_file(path, error) ||
      std::filesystem::file_size(path, error) > kMaxSize || error) {
    return std::nullopt;
  }
  try {
    return read_file(path);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Why the text is not whole; empty: it is.
std::string torn_by(const std::string& text) {
  if (text.find('\0') != text.npos) return "zero bytes in it, as a crash leaves them: not used; write it anew";
  if (!text.empty() && !text.ends_with('\n')) return "no final newline: not used; end its last line with one";
  return {};
}

std::string why_no_host(const HostList& list) {
  return list.problems.empty() ? "names no host: not used"
                               : fmt::format("names no host: {}: not used", list.problems.front());
}

}  // namespace

HostList host_list_in(const Path& file, int slots) {
  HostList list = parse_host_file(read_file(file), slots);
  if (!list.hosts.empty()) return list;
  const std::string remedy = "write one host a line into it";
  throw UsageError(fmt::format("{} names no host", file.string()),
                   list.problems.empty() ? remedy : fmt::format("{}: {}", list.problems.front(), remedy));
}

HostFileWatcher::HostFileWatcher(Path path, std::chrono::milliseconds settle, int slots)
    : path_(std::move(path)), settle_(settle), slots_(slots) {}

std::optional<HostList> HostFileWatcher::poll(Time now) {
  if (now < next_look_) return std::nullopt;
  next_look_ = now + std::min(settle_ / 4, kLookInterval);
  const std::optional<std::string> text = read_now(path_);
  if (!text || *text == accepted_) {
    candidate_.clear();
    if (text) refused_.clear();
    return std::nullopt;
  }
  if (*text != candidate_) {
    candidate_ = *text;
    candidate_since_ = now;
    if (settle_.count() > 0) return std::nullopt;
  }
  if (now - candidate_since_ < settle_) return std::nullopt;
  if (const std::string torn = torn_by(*text); !torn.empty()) return refuse(now, torn);
  HostList list = parse_host_file(*text, slots_);
  if (list.hosts.empty()) return refuse(now, why_no_host(list));
  accepted_ = std::move(candidate_);
  candidate_.clear();
  refused_.clear();
  return list;
}

std::optional<HostList> HostFileWatcher::refuse(Time now, const std::string& problem) {
  if (now - candidate_since_ < settle_ + kPatience || refused_ == candidate_) return std::nullopt;
  refused_ = candidate_;
  problem_ = problem;
  return std::nullopt;
}

std::optional<std::string> HostFileWatcher::take_problem() { return std::exchange(problem_, std::nullopt); }

}  // namespace dtrain::elastic
