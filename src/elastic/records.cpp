#include <dtrain/elastic/records.hpp>

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::elastic {
namespace {

[[noreturn]] void fail(std::string_view action, const Path& path) {
  const int error = errno;
  const std::string hint = error == ENOSPC || error == EDQUOT ? "free some space there" : "";
  throw Error(fmt::format("{}: cannot {}: {}", path.string(), action, std::strerror(error)), hint);
}

// All complete lines; a torn one at the end is left out.
std::vector<std::string> lines_of(const Path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  std::vector<std::string> lines = split(read_file(path), '\n');
  lines.pop_back();
  return lines;
}

std::optional<Json> read_object(const std::string& line) {
  try {
    Json json = Json::parse(line, "line");
    if (json.is_object()) return json;
  } catch (const DataError&) {
  }
  return std::nullopt;
}

std::optional<std::uint64_t> unsigned_of(const Json& json, std::string_view key) {
  const Json* value = json.find(key);
  if (value == nullptr || !value->is_integer() || value->as_integer() < 0) return std::nullopt;
  return static_cast<std::uint64_t>(value->as_integer());
}

}  // namespace

LineFile::LineFile(Path path) : path_(std::move(path)) {
  fd_ = FileDescriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!fd_) fail("open", path_);
  const off_t size = ::lseek(fd_.get(), 0, SEEK_END);
  char last = '\n';
  if (size > 0 && ::pread(fd_.get(), &last, 1, size - 1) != 1) fail("read", path_);
  if (last != '\n') append("", true);
}

void LineFile::append(const std::string& line, bool sync) {
  const std::string text = line + '\n';
  ssize_t written = 0;
  do {
    written = ::write(fd_.get(), text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  if (written < 0) fail("write", path_);
  if (static_cast<std::size_t>(written) != text.size()) {
    errno = ENOSPC;
    fail("write", path_);
  }
  if (sync && ::fdatasync(fd_.get()) != 0 && errno != EINVAL) fail("sync", path_);
}

MemberLog::MemberLog(Path path) : file_(std::move(path)) {
  std::set<std::string> present;
  for (const std::string& line : lines_of(file_.path())) {
    const std::vector<std::string> words = split(line, ' ');
    const auto seq = parse_integer(words[0]);
    if (words.size() != 4 || !seq || *seq < 0) continue;
    next_seq_ = std::max(next_seq_, static_cast<std::uint64_t>(*seq) + 1);
    if (words[1] == "ADDED") present.insert(words[2]);
    if (words[1] == "REMOVED") present.erase(words[2]);
  }
  present_.assign(present.begin(), present.end());
}

void MemberLog::append(bool added, const std::string& host, WallTime time) {
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  file_.append(fmt::format("{} {} {} {}", next_seq_, added ? "ADDED" : "REMOVED", host, nanoseconds), true);
  ++next_seq_;
  const auto place = std::ranges::lower_bound(present_, host);
  const bool known = place != present_.end() && *place == host;
  if (added && !known) present_.insert(place, host);
  if (!added && known) present_.erase(place);
}

EventLog::EventLog(Path path) : file_(std::move(path)) {
  for (const Json& event : read_events(file_.path())) {
    next_seq_ = std::max(next_seq_, unsigned_of(event, "seq").value_or(0) + 1);
  }
}

Json EventLog::append(const Json& event, WallTime time) {
  Json line = Json::object({{"seq", next_seq_}, {"time", format_time(time)}});
  for (const auto& [key, value] : event.as_object()) line[key] = value;
  file_.append(line.dump(), false);
  ++next_seq_;
  return line;
}

std::vector<Json> read_events(const Path& path) {
  std::vector<Json> events;
  for (const std::string& line : lines_of(path)) {
    if (std::optional<Json> event = read_object(line)) events.push_back(std::move(*event));
  }
  return events;
}

std::string format_time(WallTime time) {
  const auto micros = std::chrono::floor<std::chrono::microseconds>(time);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(micros);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)),
                     (micros - seconds).count());
}

}  // namespace dtrain::elastic
