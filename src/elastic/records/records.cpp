#include <dtrain/elastic/records.hpp>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>
#include <dtrain/base/text.hpp>

#include "pending_requests.hpp"

namespace dtrain::elastic {
namespace {

// All complete lines, without a torn one at the end.
std::vector<std::string> lines_of(const Path& path) {
  if (!file_exists(path)) return {};
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

// On a full disk the newline is kept, and written before the first line.
LineFile::LineFile(Path path, unsigned permissions) : file_(std::move(path), permissions) {
  if (!file_.ends_within_a_line()) return;
  try {
    append("", true);
  } catch (const Error&) {
    if (!file_.is_behind()) throw;
  }
}

void LineFile::append(const std::string& line, bool sync) { file_.append(line + '\n', sync); }

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
  const std::string line = fmt::format("{} {} {} {}", next_seq_++, added ? "ADDED" : "REMOVED", host, nanoseconds);
  const auto place = std::ranges::lower_bound(present_, host);
  const bool known = place != present_.end() && *place == host;
  if (added && !known) present_.insert(place, host);
  if (!added && known) present_.erase(place);
  file_.append(line, true);
}

EventLog::EventLog(Path path, unsigned permissions) : file_(std::move(path), permissions) {
  for (const Json& event : read_events(file_.path())) {
    next_seq_ = std::max(next_seq_, unsigned_of(event, "seq").value_or(0) + 1);
  }
}

Json EventLog::append(const Json& event, WallTime time) {
  Json line = Json::object({{"seq", next_seq_}, {"time", format_time(time)}});
  for (const auto& [key, value] : event.as_object()) line[key] = value;
  ++next_seq_;
  file_.append(line.dump(), must_be_on_disk(event));
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
