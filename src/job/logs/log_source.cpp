#include "log_source.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include <dtrain/base/text.hpp>
#include <dtrain/elastic/log_file.hpp>

#include "rank_line.hpp"

namespace dtrain::job {
namespace {

constexpr std::size_t kChunk = 256 << 10;
constexpr int kOldest = 9;  // highest suffix of any rotation scheme
// After a log was renamed, its writer may write to the old file for this long, see elastic/agent/log_file.
constexpr std::chrono::milliseconds kLastWords{1'500};
constexpr std::string_view kSample = "2026-01-31T23:59:59.123456Z ";
constexpr std::size_t kAfterTime = kSample.size() - 1;

bool begins_with_time(std::string_view line) {
  return line.size() >= kSample.size() && line[4] == '-' && line[10] == 'T' && line[19] == '.' && line[26] == 'Z' &&
         (line[kAfterTime] == elastic::LogFile::kBeforeLine || line[kAfterTime] == elastic::LogFile::kBeforeNote);
}

// "worker1.0" of "worker1.0.ps0" and "worker1.0.scheduler0", which name a server beside that worker.
std::string_view without_server(std::string_view name) {
  const auto dot = name.rfind('.');
  if (dot == name.npos) return name;
  for (const std::string_view role : {"ps", "scheduler"}) {
    const std::string_view last = name.substr(dot + 1);
    if (last.starts_with(role) && parse_integer(last.substr(role.size()))) return name.substr(0, dot);
  }
  return name;
}

using FileId = std::pair<dev_t, ino_t>;

std::optional<FileId> id_of(const FileDescriptor& file) {
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return std::nullopt;
  return FileId{status.st_dev, status.st_ino};
}

FileDescriptor open_file(const Path& path, int older) {
  const std::string name = older == 0 ? path.string() : fmt::format("{}.{}", path.string(), older);
  return FileDescriptor(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace

std::string_view without_time(std::string_view line) {
  return begins_with_time(line) ? line.substr(kSample.size()) : line;
}

LogSource::LogSource(const Path& path) : path_(path), name_(path.stem().string()) {
  const std::string_view worker = without_server(name_);
  const auto dot = worker.rfind('.');
  const auto slot = dot == worker.npos ? std::nullopt : parse_integer(worker.substr(dot + 1));
  if (slot && *slot >= 0) {
    host_ = worker.substr(0, dot);
    slot_ = static_cast<int>(*slot);
    is_of_worker_ = worker.size() == name_.size();
  }
  for (const std::string_view kind : {"prepare_", "agent_"}) {
    if (slot_ < 0 && name_.starts_with(kind)) host_ = name_.substr(kind.size());
  }
}

bool LogSource::next() {
  while (!take_line()) {
    if (read_more() || turn_to_next_file()) continue;
    if (!ended_ || at_ == buffer_.size()) return false;
    understand(std::string_view(buffer_).substr(at_));
    at_ = buffer_.size();
    return true;
  }
  return true;
}

bool LogSource::take_line() {
  const auto end = buffer_.find('\n', at_);
  if (end == buffer_.npos) return false;
  understand(std::string_view(buffer_).substr(at_, end - at_));
  at_ = end + 1;
  return true;
}

void LogSource::understand(std::string_view line) {
  line_ = without_time(line);
  const bool has_time = line_.size() < line.size();
  if (has_time) time_ = line.substr(0, kAfterTime);
  const bool is_note = has_time && line[kAfterTime] == elastic::LogFile::kBeforeNote;
  has_notes_ = has_notes_ || is_note;
  if (!names_rank(is_note)) return;
  if (const int rank = rank_in(line_); rank >= 0) rank_ = rank;
}

// Where a worker runs a program, the agent notes each start of it, and other lines are the program's own.
bool LogSource::names_rank(bool is_note) const { return is_of_worker_ && (is_note || !has_notes_); }

bool LogSource::read_more() {
  if (!file_) return false;
  buffer_.erase(0, at_);
  at_ = 0;
  const std::size_t before = buffer_.size();
  buffer_.resize(before + kChunk);
  ssize_t got = 0;
  do {
    got = ::read(file_.get(), buffer_.data() + before, kChunk);
  } while (got < 0 && errno == EINTR);
  buffer_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return got > 0;
}

// Called at the end of the file.
bool LogSource::turn_to_next_file() {
  if (begin_again_if_cut()) return true;
  if (waiting_.empty() && is_replaced()) open_newer();
  if (waiting_.empty()) return false;
  if (read_more()) return true;  // written before the rename, but after the last read
  file_ = std::move(waiting_.front());
  waiting_.pop_front();
  if (at_ < buffer_.size()) buffer_ += '\n';
  return true;
}

// A log rotated by copying keeps its file, which is then shorter than what was read of it.
bool LogSource::begin_again_if_cut() {
  struct stat status {};
  if (!file_ || ::fstat(file_.get(), &status) != 0 || status.st_size >= ::lseek(file_.get(), 0, SEEK_CUR)) return false;
  ::lseek(file_.get(), 0, SEEK_SET);
  buffer_.clear();
  at_ = 0;
  return true;
}

bool LogSource::is_replaced() {
  const std::optional<FileId> mine = id_of(file_), named = id_of(open_file(path_, 0));
  if (!named) return false;
  if (mine == named) {
    replaced_since_.reset();
    return false;
  }
  const auto now = std::chrono::steady_clock::now();
  if (!replaced_since_) replaced_since_ = now;
  return !mine || ended_ || now - *replaced_since_ >= kLastWords;
}

// Opens files from the newest back to the last one read, so that a concurrent rename can only repeat a file, not skip
// one.
void LogSource::open_newer() {
  replaced_since_.reset();
  const std::optional<FileId> mine = id_of(file_);
  std::vector<FileId> seen;
  for (int older = 0; older <= kOldest; ++older) {
    FileDescriptor file = open_file(path_, older);
    const std::optional<FileId> id = id_of(file);
    if (!id || id == mine) break;
    if (std::ranges::find(seen, *id) != seen.end()) continue;
    seen.push_back(*id);
    waiting_.push_front(std::move(file));
  }
}

}  // namespace dtrain::job
